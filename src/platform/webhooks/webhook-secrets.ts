import { entriesOf, textAs } from '../environment/types.js';

/** Maximum number of secrets at a time: the old one and the new one. */
const MAX_SECRETS = 2;

/** Minimum bytes of a secret by Standard Webhooks. */
const MIN_BYTES = 24;

/** Signing secrets of a provider's webhooks: two while the secret is changed. */
export const webhookSecrets = textAs(
  `a secret that begins with whsec_ and has ${MIN_BYTES} bytes or more in base64, or two separated by a comma`,
  (value) => {
    const entries = entriesOf(value);
    if (entries.length === 0 || entries.length > MAX_SECRETS) return undefined;
    return entries.every(isSecret) ? entries : undefined;
  },
);

function isSecret(entry: string): boolean {
  const [, base64] =
    /^whsec_((?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?)$/.exec(entry) ?? [];
  return base64 !== undefined && Buffer.from(base64, 'base64').length >= MIN_BYTES;
}
