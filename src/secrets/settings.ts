import { area, variable } from '../environment/area.js';
import { bytes } from '../environment/types.js';

export const secretsSettings = area('Secrets at rest', () => ({
  encryptionKey: variable(
    'ENCRYPTION_KEY',
    bytes(32),
    'wraps the key of every secret at rest; `npm start` makes one',
    { secret: true },
  ),
}));
