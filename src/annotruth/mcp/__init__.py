"""`annotruth mcp`: a server of the Model Context Protocol, with which agents fit and explain labels.

It needs the package ``mcp`` (``pip install "annotruth[mcp]"``), and reads files of one folder only.
"""
