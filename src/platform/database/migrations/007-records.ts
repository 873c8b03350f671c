import { ownedThrough, PLATFORM } from '../schema/policies.js';
import {
  grantExecute,
  protectTable,
  removeOldestSql,
  run,
  servingRole,
  type Migration,
} from './migration.js';

/** Records of requests: idempotency keys and the audit log. */
export const migration: Migration = async (context) => {
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

     -- No foreign key to users: the log outlives them.
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
     CREATE INDEX audit_log_user ON audit_log (user_id, id);
     CREATE INDEX audit_log_failed_sign_ins ON audit_log (subject)
       WHERE action = 'sign-in.failed';

     -- GRANTs keep the serving role from changing the log; these triggers keep every role from it. Two
     -- changes are allowed: erasing the subject of a failed sign-in with its account, and removing lines
     -- older than 90 days.
     CREATE FUNCTION refuse_audit_change() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
       END$$;
     CREATE TRIGGER audit_log_append_only BEFORE TRUNCATE ON audit_log
       FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

     CREATE FUNCTION refuse_audit_update() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         IF OLD.action = 'sign-in.failed' AND NEW.subject = '(erased)'
           AND to_jsonb(NEW) - 'subject' = to_jsonb(OLD) - 'subject' THEN RETURN NEW; END IF;
         RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
       END$$;
     CREATE TRIGGER audit_log_unchanged BEFORE UPDATE ON audit_log
       FOR EACH ROW EXECUTE FUNCTION refuse_audit_update();

     CREATE FUNCTION refuse_audit_removal() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         IF OLD.at < now() - interval '90 days' THEN RETURN OLD; END IF;
         RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
       END$$;
     CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log
       FOR EACH ROW EXECUTE FUNCTION refuse_audit_removal();

     ${removeOldestSql('remove_old_audit', 'audit_log', 'at', 90)}`,
  );
  await protectTable(context, 'idempotency_keys', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);
  await protectTable(context, 'audit_log', 'SELECT, INSERT', ownedThrough('user_id'));
  await run(context, `GRANT USAGE ON SEQUENCE audit_log_id_seq TO ${servingRole(context)};`);
  await grantExecute(context, ['remove_old_audit(integer, integer)']);
};
