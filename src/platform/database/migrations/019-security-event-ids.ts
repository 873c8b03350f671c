import { run, type Migration } from './migration.js';

/**
 * Security events are keyed by the token's `jti`, and remember its time of issue. Earlier rows, and those of an
 * earlier release, have only its digest `id`, which stays unique: a token acts once whichever release stored it.
 */
export const migration: Migration = async (context) => {
  await run(
    context,
    `ALTER TABLE risc_events ADD COLUMN jti text, ADD COLUMN issued_at timestamptz;
     UPDATE risc_events SET jti = id;
     ALTER TABLE risc_events DROP CONSTRAINT risc_events_pkey;
     ALTER TABLE risc_events ADD PRIMARY KEY (jti), ADD CHECK (length(jti) <= 512);
     CREATE UNIQUE INDEX risc_events_id_key ON risc_events (id);

     CREATE FUNCTION name_risc_event() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         NEW.jti := coalesce(NEW.jti, NEW.id);
         RETURN NEW;
       END$$;
     CREATE TRIGGER risc_events_named BEFORE INSERT ON risc_events
       FOR EACH ROW EXECUTE FUNCTION name_risc_event();`,
  );
};
