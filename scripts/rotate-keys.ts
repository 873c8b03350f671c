// Rewraps every secret under the first key of ENCRYPTION_KEYS, while the platform runs.
import { Database } from '../src/platform/database/database.js';
import { databaseSettings } from '../src/platform/database/settings.js';
import { readAreas } from '../src/platform/environment/read.js';
import { rotateKeys } from '../src/rotate-keys.js';
import { SecretBox } from '../src/platform/secrets/secret-box.js';
import { secretsSettings } from '../src/platform/secrets/settings.js';
import { runScript } from '../src/run-script.js';

/** Milliseconds between two progress lines. */
const REPORT_EVERY_MS = 5_000;

await runScript(main);

async function main(): Promise<void> {
  const settings = readAreas({ database: databaseSettings, secrets: secretsSettings }, process.env);
  const { keys } = settings.secrets;
  const database = new Database(settings.database.url, { maxConnections: 4 });
  let reportedAt = Date.now();
  try {
    const { left, rewrapped } = await rotateKeys(database, new SecretBox(keys), (count) => {
      if (Date.now() - reportedAt < REPORT_EVERY_MS) return;
      reportedAt = Date.now();
      console.log(`${count} secrets so far ...`);
    });
    console.log(`${rewrapped} secrets were put under key ${keys[0].id}. Left: ${left}.`);
    if (left === 0) return;
    console.log(
      'The remaining secrets were sealed by a process that still has another key first, or under a key that ' +
        'is not in ENCRYPTION_KEYS: correct that, and run this again before you remove a key.',
    );
    process.exitCode = 1;
  } finally {
    await database.close();
  }
}
