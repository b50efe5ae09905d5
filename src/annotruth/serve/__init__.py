"""The service that collects labels while they are given (`annotruth serve`); needs the extra serve."""
