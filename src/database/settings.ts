import { area, variable } from '../environment/area.js';
import { url } from '../environment/types.js';

const address = url('postgres', 'postgresql');

export const databaseSettings = area('PostgreSQL', () => ({
  url: variable(
    'DATABASE_URL',
    address,
    'the role that serves requests; `npm start` runs a database of its own',
    { secret: true },
  ),
  ownerUrl: variable(
    'DATABASE_OWNER_URL',
    address.optional(),
    'the role that owns the tables, for migrations',
    { secret: true },
  ),
}));
