"""The HTML report and the charts of fits."""
