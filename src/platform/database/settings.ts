import { address } from '../environment/address.js';
import { area, variable } from '../environment/area.js';

export const databaseSettings = area('PostgreSQL', (mode) => ({
  url: variable(
    'DATABASE_URL',
    address(mode, 'postgres', 'postgresql'),
    'address of the database, with the role that serves requests; `npm start` runs a database of its own',
    { secret: true },
  ),
}));

/** Settings for migrations only: serving processes do not have them. */
export const migrationSettings = area('Migrations', (mode) => ({
  ownerUrl: variable(
    'DATABASE_OWNER_URL',
    address(mode, 'postgres', 'postgresql').optional(),
    'address of the database, with the role that owns the tables; only for `scripts/migrate.js`',
    { secret: true },
  ),
}));
