import { ownedThrough } from '../schema/policies.js';
import { grantExecute, protectTable, run, type Migration } from './migration.js';

/** Gas of the operator's transactions, reserved for whoever causes them. */
export const migration: Migration = async (context) => {
  await run(
    context,
    `CREATE TABLE gas_reservations (
       -- The cause of the payment that the gas is for.
       id text PRIMARY KEY,
       -- Null once the account is deleted, so that its gas still counts for all.
       user_id text REFERENCES users ON DELETE SET NULL,
       wallet text CHECK (wallet ~ '^0x[0-9a-f]{40}$'),
       client text,
       gas bigint NOT NULL CHECK (gas >= 0),
       has_failed boolean NOT NULL DEFAULT false,
       reserved_at timestamptz NOT NULL DEFAULT now(),
       settled_at timestamptz
     );
     CREATE INDEX gas_reservations_day ON gas_reservations (reserved_at, gas);
     CREATE INDEX gas_reservations_user ON gas_reservations (user_id, reserved_at)
       WHERE user_id IS NOT NULL;
     CREATE INDEX gas_reservations_wallet ON gas_reservations (wallet, reserved_at)
       WHERE wallet IS NOT NULL;
     CREATE INDEX gas_reservations_client ON gas_reservations (client, reserved_at)
       WHERE client IS NOT NULL;

     CREATE FUNCTION forget_gas_owner() RETURNS trigger
       LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
       $$BEGIN
         NEW.wallet := NULL;
         NEW.client := NULL;
         RETURN NEW;
       END$$;
     CREATE TRIGGER gas_reservations_forgotten BEFORE UPDATE OF user_id ON gas_reservations
       FOR EACH ROW WHEN (OLD.user_id IS NOT NULL AND NEW.user_id IS NULL)
       EXECUTE FUNCTION forget_gas_owner();

     -- Reserves gas of the UTC day, or names the limit that refuses it and the gas that counts toward
     -- that limit. Without a user the gas counts for the wallet and for the client.
     CREATE FUNCTION reserve_gas(of_payment text, of_user text, of_wallet text, of_client text,
                                 wanted bigint, limit_of_owner bigint, limit_of_all bigint,
                                 OUT refused_by text, OUT current bigint)
       LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
       $$DECLARE
         today timestamptz := date_trunc('day', now(), 'UTC');
       BEGIN
         IF current_setting('app.platform', true) IS DISTINCT FROM 'on'
            AND of_user IS DISTINCT FROM current_setting('app.user_id', true) THEN
           RAISE EXCEPTION 'the gas is not of the tenant' USING ERRCODE = 'insufficient_privilege';
         END IF;
         -- Until the commit, so that no two reservations exceed a limit together.
         PERFORM pg_advisory_xact_lock(hashtext('gas-reservations'));
         SELECT coalesce(greatest(
             (SELECT sum(g.gas) FROM public.gas_reservations g
               WHERE g.user_id = of_user AND g.reserved_at >= today),
             (SELECT sum(g.gas) FROM public.gas_reservations g
               WHERE of_user IS NULL AND g.user_id IS NULL
                 AND g.wallet = of_wallet AND g.reserved_at >= today),
             (SELECT sum(g.gas) FROM public.gas_reservations g
               WHERE of_user IS NULL AND g.user_id IS NULL
                 AND g.client = of_client AND g.reserved_at >= today)), 0)
           INTO current;
         IF current + wanted > limit_of_owner THEN
           refused_by := 'owner';
           RETURN;
         END IF;
         SELECT coalesce(sum(g.gas), 0) INTO current
           FROM public.gas_reservations g WHERE g.reserved_at >= today;
         IF current + wanted > limit_of_all THEN
           refused_by := 'all';
           RETURN;
         END IF;
         INSERT INTO public.gas_reservations (id, user_id, wallet, client, gas)
           VALUES (of_payment, of_user, of_wallet, of_client, wanted);
       END$$;`,
  );
  // Rows are inserted by the function alone.
  await protectTable(
    context,
    'gas_reservations',
    'SELECT, DELETE, UPDATE (gas, has_failed, settled_at)',
    ownedThrough('user_id'),
  );
  await grantExecute(context, ['reserve_gas(text, text, text, text, bigint, bigint, bigint)']);
};
