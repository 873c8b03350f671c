import { PLATFORM } from '../schema/policies.js';
import { protectTable, run, type Migration } from './migration.js';

const COUNTS = `
   -- 'found': another table has the answer. 'dropped': the answer is no longer kept.
   ALTER TABLE idempotency_keys
     ADD COLUMN bytes integer NOT NULL DEFAULT 0,
     DROP CONSTRAINT idempotency_keys_state_check,
     ADD CONSTRAINT idempotency_keys_state_check
       CHECK (state IN ('running', 'done', 'found', 'dropped'));

   -- The sum of the bytes of an owner's answers. Lock order: answers, then sums in the order of their owners.
   -- Holders of a sum skip locked answers, so that no two transactions deadlock.
   CREATE TABLE kept_answers (
     owner text PRIMARY KEY,
     bytes bigint NOT NULL
   );`;

const FUNCTIONS = `
   -- The same user calls with the internal key, by a session, or as claimed on this machine.
   CREATE FUNCTION owner_of_answer(caller text) RETURNS text
     LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS
     $$BEGIN RETURN regexp_replace(caller, '^(internal|claimed):(?=.)', ''); END$$;

   CREATE FUNCTION count_answers(of_owner text, more bigint) RETURNS void
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       INSERT INTO public.kept_answers AS k (owner, bytes) VALUES (of_owner, more)
         ON CONFLICT (owner) DO UPDATE SET bytes = k.bytes + excluded.bytes;
     END$$;

   CREATE FUNCTION count_answer() RETURNS trigger
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       PERFORM public.count_answers(public.owner_of_answer(NEW.caller), NEW.bytes - OLD.bytes);
       RETURN NULL;
     END$$;
   -- drop_answers() counts what it drops: a row of the sum is changed once, not for each answer.
   CREATE TRIGGER idempotency_keys_counted AFTER UPDATE ON idempotency_keys
     FOR EACH ROW WHEN (OLD.bytes <> NEW.bytes AND NEW.state <> 'dropped')
     EXECUTE FUNCTION count_answer();

   CREATE FUNCTION count_removed_answers() RETURNS trigger
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       INSERT INTO public.kept_answers AS k (owner, bytes)
         SELECT public.owner_of_answer(g.caller), -sum(g.bytes) FROM gone g
          WHERE g.bytes > 0 GROUP BY 1 ORDER BY 1
         ON CONFLICT (owner) DO UPDATE SET bytes = k.bytes + excluded.bytes;
       RETURN NULL;
     END$$;
   CREATE TRIGGER idempotency_keys_removed AFTER DELETE ON idempotency_keys
     REFERENCING OLD TABLE AS gone
     FOR EACH STATEMENT EXECUTE FUNCTION count_removed_answers();

   CREATE FUNCTION forget_kept_answers() RETURNS trigger
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       DELETE FROM public.kept_answers WHERE owner = OLD.id;
       RETURN NULL;
     END$$;
   CREATE TRIGGER users_forget_kept_answers AFTER DELETE ON users
     FOR EACH ROW EXECUTE FUNCTION forget_kept_answers();

   -- Drops the oldest answers of an owner until at most "most" bytes are kept. Keys and digests of the
   -- requests stay, so that no request runs twice. SKIP LOCKED leaves out answers that are being removed.
   CREATE FUNCTION drop_answers(of_owner text, most bigint) RETURNS bigint
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       dropped bigint;
     BEGIN
       WITH aged AS (
         SELECT a.caller, a.route, a.key,
                sum(a.bytes) OVER (ORDER BY a.created_at DESC, a.caller, a.route, a.key) AS newest
           FROM public.idempotency_keys a
          WHERE a.caller IN (of_owner, 'internal:' || of_owner, 'claimed:' || of_owner)
            AND a.bytes > 0
       ), locked AS (
         SELECT k.caller, k.route, k.key, k.bytes
           FROM public.idempotency_keys k JOIN aged USING (caller, route, key)
          WHERE aged.newest > most AND k.bytes > 0 FOR UPDATE OF k SKIP LOCKED
       ), emptied AS (
         UPDATE public.idempotency_keys k
            SET state = 'dropped', status = NULL, body = NULL, headers = NULL, bytes = 0
           FROM locked l WHERE (k.caller, k.route, k.key) = (l.caller, l.route, l.key)
          RETURNING l.bytes
       )
       SELECT coalesce(sum(e.bytes), 0) INTO dropped FROM emptied e;
       IF dropped > 0 THEN PERFORM public.count_answers(of_owner, -dropped); END IF;
       RETURN dropped;
     END$$;

   -- Keeps the answer of a run; false if another run has its key. "again" overwrites an earlier answer of the
   -- run. An answer of more than "most" bytes is dropped at once. If all answers of the owner exceed them, the
   -- oldest go until an eighth is free, so that this is rare.
   CREATE FUNCTION keep_answer(of_caller text, of_route text, of_key text, of_run timestamptz,
                               again boolean, new_status integer, new_body jsonb, new_headers jsonb,
                               new_bytes integer, most bigint) RETURNS boolean
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       its_owner text := public.owner_of_answer(of_caller);
       fits boolean := new_bytes <= most;
     BEGIN
       UPDATE public.idempotency_keys k
          SET state = 'done', status = new_status, headers = new_headers,
              body = CASE WHEN fits THEN new_body END, bytes = CASE WHEN fits THEN new_bytes ELSE 0 END
        WHERE k.caller = of_caller AND k.route = of_route AND k.key = of_key
          AND k.locked_until = of_run AND (again OR k.state = 'running');
       IF NOT FOUND THEN RETURN false; END IF;
       IF NOT fits THEN
         UPDATE public.idempotency_keys k SET state = 'dropped', status = NULL, headers = NULL
          WHERE k.caller = of_caller AND k.route = of_route AND k.key = of_key;
       ELSIF (SELECT a.bytes > most FROM public.kept_answers a WHERE a.owner = its_owner) THEN
         PERFORM public.drop_answers(its_owner, most - most / 8);
       END IF;
       RETURN true;
     END$$;

   -- Beyond "total" bytes of all owners, drops answers of those who have most, until a sixteenth is free or a
   -- hundred owners have given: the owners above a level are cut to this level. Returns the dropped bytes.
   CREATE FUNCTION drop_most_kept(total bigint) RETURNS bigint
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$DECLARE
       excess bigint;
       level bigint;
       one text;
       dropped bigint := 0;
     BEGIN
       SELECT sum(k.bytes) INTO excess FROM public.kept_answers k;
       IF coalesce(excess, 0) <= total OR NOT pg_try_advisory_xact_lock(hashtext('drop_most_kept')) THEN
         RETURN 0;
       END IF;
       excess := excess - total + total / 16;
       WITH most AS (
         SELECT k.bytes, row_number() OVER held AS owners, sum(k.bytes) OVER held AS upto,
                lead(k.bytes, 1, 0::bigint) OVER held AS next
           FROM public.kept_answers k WINDOW held AS (ORDER BY k.bytes DESC, k.owner)
          ORDER BY k.bytes DESC, k.owner LIMIT 100
       )
       SELECT max(greatest(0, floor((m.upto - excess) / m.owners))) INTO level
         FROM most m WHERE m.owners = 100 OR (m.upto - excess) / m.owners >= m.next;
       FOR one IN
         SELECT o.owner FROM (SELECT k.owner, k.bytes FROM public.kept_answers k
                               ORDER BY k.bytes DESC, k.owner LIMIT 100) o
          WHERE o.bytes > level ORDER BY o.owner
       LOOP
         dropped := dropped + public.drop_answers(one, level);
       END LOOP;
       RETURN dropped;
     END$$;`;

/** Bounds of the bytes that answers to requests with an `Idempotency-Key` take. */
export const migration: Migration = async (context) => {
  await run(context, COUNTS);
  await protectTable(context, 'kept_answers', 'SELECT, INSERT, UPDATE, DELETE', PLATFORM);
  await run(context, FUNCTIONS);
};
