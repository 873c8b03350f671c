import { grantExecute, run, type Migration } from './migration.js';

/** Rows at the front, by the order in which they were made, so that no index on times is needed. */
const removeOldest = (table: string, time: string, least: number) =>
  `WITH oldest AS (
     SELECT id, ${time} AS at FROM public.${table} ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED
   ), gone AS (
     DELETE FROM public.${table} t USING oldest o
      WHERE t.id = o.id AND o.at < now() - make_interval(days => greatest(days, ${least}))
      RETURNING t.id)
   SELECT count(*)::integer FROM gone`;

/** What removes rows by their age alone, where nobody else may remove any. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `CREATE INDEX agents_deleted ON agents (deleted_at) WHERE deleted_at IS NOT NULL;
       CREATE INDEX operations_finished ON operations (finished_at) WHERE kind <> 'provision';
       CREATE INDEX watchdog_transitions_at ON watchdog_transitions (at);
       CREATE INDEX messages_created ON messages (created_at);

       -- What belonged to a removed agent goes before it, so that no statement takes long. One stays
       -- while its host has volumes of it: only what is named here is ever removed there.
       CREATE FUNCTION remove_old_agents(days integer, most integer) RETURNS integer
         LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$DECLARE
           gone text[] := ARRAY(
             SELECT a.id FROM public.agents a
              WHERE a.deleted_at < now() - make_interval(days => greatest(days, 7))
                AND NOT EXISTS (SELECT FROM public.operations o
                                 WHERE o.agent_id = a.id AND o.finished_at IS NULL)
                AND NOT EXISTS (SELECT FROM public.agent_volumes v
                                  JOIN public.hosts h ON h.id = a.host
                                 WHERE v.agent_id = a.id)
              ORDER BY a.deleted_at LIMIT most FOR UPDATE SKIP LOCKED);
           part text;
           done integer;
         BEGIN
           FOREACH part IN ARRAY ARRAY['messages', 'watchdog_transitions', 'operations'] LOOP
             EXECUTE format(
               'DELETE FROM public.%1$I WHERE id = ANY (ARRAY(
                  SELECT id FROM public.%1$I WHERE agent_id = ANY ($1) LIMIT $2))', part)
               USING gone, most;
             GET DIAGNOSTICS done = ROW_COUNT;
             IF done > 0 THEN RETURN done; END IF;
           END LOOP;
           DELETE FROM public.agents WHERE id = ANY (gone);
           GET DIAGNOSTICS done = ROW_COUNT;
           RETURN done;
         END$$;

       CREATE FUNCTION remove_old_usage(days integer, most integer) RETURNS integer
         LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$${removeOldest('usage_logs', 'created_at', 35)}$$;

       CREATE FUNCTION remove_old_audit(days integer, most integer) RETURNS integer
         LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
         $$${removeOldest('audit_log', 'at', 90)}$$;

       -- Nobody changes the audit log, and nobody removes what is younger than 90 days.
       CREATE FUNCTION refuse_audit_removal() RETURNS trigger
         LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
         $$BEGIN
           IF OLD.at < now() - interval '90 days' THEN RETURN OLD; END IF;
           RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
         END$$;
       DROP TRIGGER audit_log_append_only ON audit_log;
       CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR TRUNCATE ON audit_log
         FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
       CREATE TRIGGER audit_log_kept BEFORE DELETE ON audit_log
         FOR EACH ROW EXECUTE FUNCTION refuse_audit_removal();`,
    );
    await grantExecute(context, 'remove_old_agents(integer, integer)');
    await grantExecute(context, 'remove_old_usage(integer, integer)');
    await grantExecute(context, 'remove_old_audit(integer, integer)');
  },

  async down(context) {
    await run(
      context,
      `DROP TRIGGER audit_log_kept ON audit_log;
       DROP TRIGGER audit_log_append_only ON audit_log;
       CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
         FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
       DROP FUNCTION refuse_audit_removal();
       DROP FUNCTION remove_old_audit(integer, integer);
       DROP FUNCTION remove_old_usage(integer, integer);
       DROP FUNCTION remove_old_agents(integer, integer);
       DROP INDEX messages_created, watchdog_transitions_at, operations_finished, agents_deleted;`,
    );
  },
};
