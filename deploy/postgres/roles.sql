-- Makes the roles and databases of the platform and of Temporal, and sets their passwords. May run again:
--   FOLDER=deploy/secrets psql -f deploy/postgres/roles.sql <address of a superuser>
\set ON_ERROR_STOP on
\set owner_password `cat "$FOLDER/database_owner_password"`
\set password `cat "$FOLDER/database_password"`
\set temporal_password `cat "$FOLDER/temporal_password"`

SELECT format('CREATE ROLE %I', name)
  FROM unnest(ARRAY['platform_owner', 'platform', 'temporal']) AS wanted (name)
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
-- The owner makes tables in migrations; the other role serves requests, under row-level security.
ALTER ROLE platform_owner LOGIN PASSWORD :'owner_password';
ALTER ROLE platform LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
ALTER ROLE temporal LOGIN PASSWORD :'temporal_password';

SELECT format('CREATE DATABASE %I OWNER %I', name, owner)
  FROM (VALUES ('platform', 'platform_owner'), ('temporal', 'temporal'), ('temporal_visibility', 'temporal'))
    AS wanted (name, owner)
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name) \gexec
REVOKE ALL ON DATABASE platform FROM PUBLIC;
GRANT CONNECT ON DATABASE platform TO platform;
REVOKE ALL ON DATABASE temporal FROM PUBLIC;
REVOKE ALL ON DATABASE temporal_visibility FROM PUBLIC;
