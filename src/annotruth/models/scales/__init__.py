"""Models of scales: serious labels are scores with noise."""
