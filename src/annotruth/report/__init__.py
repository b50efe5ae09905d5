"""What people look at: charts and pages made of records and specs."""
