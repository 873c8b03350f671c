import { run, type Migration } from './migration.js';

const forgetting = (gone: string) =>
  `CREATE OR REPLACE FUNCTION forget_wallets() RETURNS trigger
     LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
     $$BEGIN
       DELETE FROM public.wallets WHERE user_id = OLD.id AND (sealed_key IS NULL OR ${gone});
       RETURN NULL;
     END$$;`;

/**
 * Tells the keys that users have brought from those that were made for them in the same place. Those from
 * before count as made here: nothing in their wallets may be lost.
 */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE wallets ADD COLUMN brought boolean NOT NULL DEFAULT false
         CHECK (NOT brought OR kind = 'imported');
       ${forgetting('brought')}`,
    );
  },

  async down(context) {
    await run(
      context,
      `${forgetting("kind = 'imported'")}
       ALTER TABLE wallets DROP COLUMN brought;`,
    );
  },
};
