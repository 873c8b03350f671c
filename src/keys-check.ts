import { failure, ok, warning, type Finding } from './doctor/check.js';
import type { Database } from './platform/database/database.js';
import { readAreas, type Environment } from './platform/environment/read.js';
import { ONLY_KEY } from './platform/secrets/key-ring.js';
import { SecretBox } from './platform/secrets/secret-box.js';
import { secretsSettings } from './platform/secrets/settings.js';
import { keysInUse, type KeyInUse } from './rotate-keys.js';

/** Checks that the ring opens all sealed secrets, and names the keys that may be dropped. */
export async function checkKeys(database: Database, env: Environment): Promise<Finding[]> {
  const { keys } = readAreas({ secrets: secretsSettings }, env).secrets;
  const [{ id: current }] = keys;
  const used = await keysInUse(database, new SecretBox(keys));
  const known = new Set(keys.map(({ id }) => id));
  const unused = keys.filter(({ id }) => id !== current && !used.some((key) => key.id === id));
  return [
    ...(used.some(({ id }) => id === current)
      ? []
      : [ok(`Key ${current} seals; no secret is sealed with it yet.`)]),
    ...used.map((key) => findingOf(key, current, known)),
    ...unused.map(({ id }) =>
      ok(`Key ${id} opens no secret any more: you can remove it from ENCRYPTION_KEYS.`),
    ),
  ];
}

function findingOf(
  { count, id, opens }: KeyInUse,
  current: string,
  known: ReadonlySet<string>,
): Finding {
  const secrets = `${count} ${count === 1 ? 'secret' : 'secrets'}`;
  if (!known.has(id)) {
    return failure(
      `${secrets} sealed with key ${id} cannot be opened: add key ${id} to ENCRYPTION_KEYS.`,
    );
  }
  if (!opens) {
    const variable = id === ONLY_KEY ? 'ENCRYPTION_KEY or ENCRYPTION_KEYS' : 'ENCRYPTION_KEYS';
    return failure(
      `Key ${id} does not open ${secrets} sealed with a key of that name: set the right key in ${variable}.`,
    );
  }
  if (id === current) return ok(`Key ${id} seals, and opens ${secrets}.`);
  return warning(
    `${secrets} sealed with the old key ${id}: run scripts/rotate-keys.js before you remove the key.`,
  );
}
