"""The workbook of a fit: whom to pay, what to relabel, what is disputed, and where it comes from."""
