// Puts every secret under the first key of ENCRYPTION_KEYS, while the platform runs.
import { Database } from '../src/database/database.js';
import { databaseSettings } from '../src/database/settings.js';
import { readAreas } from '../src/environment/read.js';
import { SettingsError } from '../src/environment/settings-error.js';
import { rotateKeys } from '../src/secrets/rotate-keys.js';
import { SecretBox } from '../src/secrets/secret-box.js';
import { secretsSettings } from '../src/secrets/settings.js';

/** Between two lines that tell how far it is. */
const TELL_EVERY_MS = 5_000;

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof SettingsError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

async function main(): Promise<number> {
  const settings = readAreas({ database: databaseSettings, secrets: secretsSettings }, process.env);
  const { keys } = settings.secrets;
  const database = new Database(settings.database.url, { maxConnections: 4 });
  let told = Date.now();
  try {
    const { left, rewrapped } = await rotateKeys(database, new SecretBox(keys), (count) => {
      if (Date.now() - told < TELL_EVERY_MS) return;
      told = Date.now();
      console.log(`${count} secrets so far ...`);
    });
    console.log(`${rewrapped} secrets were put under key ${keys[0].id}. Left: ${left}.`);
    if (left === 0) return 0;
    console.log(
      'What is left was sealed by a process that still has another key first, or under a key that ' +
        'is not in ENCRYPTION_KEYS: see to that, and run this again before any key is dropped.',
    );
    return 1;
  } finally {
    await database.close();
  }
}
