import { run, servingRole, type Migration } from './migration.js';

/** What a transaction has cost the operator, by the receipt with which it became final. */
export const migration: Migration = {
  async up(context) {
    await run(
      context,
      `ALTER TABLE transactions
         ADD COLUMN fee bigint CHECK (fee > 0), ADD COLUMN fee_payer text,
         ADD COLUMN fee_block text,
         ADD CONSTRAINT transactions_fee
           CHECK (num_nonnulls(fee, fee_payer, fee_block) = 0
                  OR num_nonnulls(fee, fee_payer, fee_block, final_at) = 4);
       GRANT UPDATE (fee, fee_payer, fee_block) ON transactions TO ${servingRole(context)};`,
    );
  },

  async down(context) {
    await run(
      context,
      'ALTER TABLE transactions DROP COLUMN fee, DROP COLUMN fee_payer, DROP COLUMN fee_block;',
    );
  },
};
