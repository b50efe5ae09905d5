"""Addresses that requests may be sent to."""

import pytest

from annotruth.serve.addresses import PrivateAddressError, allowed_addresses, is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0"),
        *(
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fe80::1%eth0",
            "fc00::1",
            "ff02::1",
        ),
        *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::"),
    ],
)
def test_private_addresses(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34"])
def test_public_addresses(address):
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1"])
def test_names_of_this_machine(host):
    with pytest.raises(PrivateAddressError, match="is a private address"):
        allowed_addresses(host, 80, allow_private=False)
    assert allowed_addresses(host, 80, allow_private=True)[0] in ("127.0.0.1", "::1")
