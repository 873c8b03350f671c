import { area, variable, type SettingsOf, type Values } from '../environment/area.js';
import { bytes, entriesOf, textAs, textMatching } from '../environment/types.js';
import { installationOf, ONLY_KEY, ringOf, type EncryptionKey, type KeyRing } from './key-ring.js';

const KEY_BYTES = 32;

const ring = textAs(
  `keys of ${KEY_BYTES} bytes like 2:<base64>,1:<base64>, each with a name of its own`,
  (value): KeyRing | undefined => {
    const [first, ...others] = entriesOf(value).map(keyIn);
    if (first === undefined || others.includes(undefined)) return undefined;
    const keys: KeyRing = [first, ...others.filter((key) => key !== undefined)];
    return new Set(keys.map(({ id }) => id)).size === keys.length ? keys : undefined;
  },
);

function keyIn(entry: string): EncryptionKey | undefined {
  const [, id = '', base64 = ''] = /^([a-zA-Z0-9-]{1,32}):(.+)$/.exec(entry) ?? [];
  const key = Buffer.from(base64, 'base64');
  return key.length === KEY_BYTES ? { id, key } : undefined;
}

const variables = () => ({
  key: variable(
    'ENCRYPTION_KEY',
    bytes(KEY_BYTES).optional(),
    'encryption key that wraps the key of every stored secret; `npm start` generates one',
    { secret: true, whenUnset: 'required without `ENCRYPTION_KEYS`' },
  ),
  ring: variable(
    'ENCRYPTION_KEYS',
    ring.optional(),
    'list of encryption keys, for the replacement of a key: the first one encrypts, all decrypt. `ENCRYPTION_KEY` is its last key, `1`',
    { secret: true, whenUnset: 'only `ENCRYPTION_KEY`' },
  ),
  installation: variable(
    'INSTALLATION_ID',
    textMatching(/^[0-9a-f]{16}$/, '16 hex digits (openssl rand -hex 8)').optional(),
    'label of all Docker resources of this installation, which distinguishes them from those of other installations',
    { whenUnset: 'made of `ENCRYPTION_KEY`; required with `ENCRYPTION_KEYS`' },
  ),
});

export const secretsSettings = area(
  'Secrets at rest',
  variables,
  (values) => {
    const keys = keysOf(values);
    return {
      keys,
      /** Identifies this installation on Docker even after its keys change. */
      installation: values.installation ?? installationOf(keys[0].key),
    };
  },
  problemsOf,
);

export type SecretsSettings = SettingsOf<typeof secretsSettings>;

type Read = Values<ReturnType<typeof variables>>;

function problemsOf({ key, ring, installation }: Read): string[] {
  if (ring === undefined) return key === undefined ? ['ENCRYPTION_KEY is missing'] : [];
  const named = ring.find(({ id }) => id === ONLY_KEY)?.key;
  if (key && named && !key.equals(named)) {
    return [`ENCRYPTION_KEY is not the key ${ONLY_KEY} of ENCRYPTION_KEYS`];
  }
  if (installation !== undefined) return [];
  const before = key ?? named;
  const usual = before && `; without one it was ${installationOf(before)}`;
  return [`INSTALLATION_ID is missing: it must stay as the keys change${usual ?? ''}`];
}

function keysOf({
  key,
  ring = [],
}: Pick<Read, 'key'> & { ring?: readonly EncryptionKey[] | undefined }): KeyRing {
  const alone = key ? ringOf(key).filter(({ id }) => !ring.some((named) => named.id === id)) : [];
  const [first, ...others] = [...ring, ...alone];
  if (first === undefined) throw new TypeError('no encryption key was read: set one');
  return [first, ...others];
}
