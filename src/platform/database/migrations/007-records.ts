import { ownedThrough, PLATFORM } from '../schema/policies.js';
import { protectTable, run, servingRole, type Migration } from './migration.js';

/** Records of requests: idempotency keys and the audit log. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE TABLE idempotency_keys (
         caller text NOT NULL,
         route text NOT NULL,
         key text NOT NULL,
         request_hash text NOT NULL,
         state text NOT NULL CHECK (state IN ('running', 'done')),
         status integer,
         body jsonb,
         headers jsonb,
         locked_until timestamptz NOT NULL,
         created_at timestamptz NOT NULL,
         PRIMARY KEY (caller, route, key)
       );
       CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);

       -- No reference to users: what was done outlives who did it.
       CREATE TABLE audit_log (
         id bigserial PRIMARY KEY,
         at timestamptz NOT NULL DEFAULT now(),
         actor text NOT NULL,
         user_id text CHECK (user_id <> ''),
         action text NOT NULL,
         subject text NOT NULL,
         detail jsonb NOT NULL DEFAULT '{}',
         request_id text
       );

       -- GRANTs keep the serving role from changing the log; this keeps everybody from it.
       CREATE FUNCTION refuse_audit_change() RETURNS trigger
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
         $$BEGIN
           RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
         END$$;
       CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
         FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();`,
    );

    await protectTable(context, 'idempotency_keys', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);
    await protectTable(context, 'audit_log', 'SELECT, INSERT', ownedThrough('user_id'));
    await run(context, `GRANT USAGE ON SEQUENCE audit_log_id_seq TO ${servingRole(context)};`);
  },

  async down(context) {
    await run(
      context,
      `DROP TABLE audit_log, idempotency_keys;
       DROP FUNCTION refuse_audit_change();`,
    );
  },
};
