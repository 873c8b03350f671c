import { run, servingRole, type Migration } from './migration.js';

/** The time at which an administrator withdrew a skill: its author cannot make it public again. */
export const migration: Migration = (context) =>
  run(
    context,
    `ALTER TABLE skills
       ADD COLUMN withdrawn_at timestamptz,
       ADD CONSTRAINT skills_withdrawn_check
         CHECK (withdrawn_at IS NULL OR visibility = 'private');
     GRANT UPDATE (withdrawn_at) ON skills TO ${servingRole(context)};`,
  );
