#!/bin/sh
# Makes or updates the schemas of Temporal's two databases, which roles.sql has created. May run again.
set -eu
SQL_PASSWORD=$(cat /run/secrets/temporal_password)
export SQL_PASSWORD
for name in temporal visibility; do
  database=temporal
  if [ "$name" = visibility ]; then database=temporal_visibility; fi
  tool="temporal-sql-tool --plugin postgres12 --ep postgres -p 5432 -u temporal --db $database"
  $tool setup-schema -v 0.0
  $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$name/versioned"
done
