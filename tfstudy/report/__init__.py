"""What people read: tables of records."""
