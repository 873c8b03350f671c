import { createHash } from 'node:crypto';
import type { Check } from '../../types/verification.js';

/** The kind of verification: the running container was compared with what the platform would run. */
export const VERIFICATION_TYPE = 'runtime';

/** Returns the SHA-256 of the checks' JSON, in the form in which answers have them. */
export function evidenceOf(checks: readonly Check[]): `0x${string}` {
  const text = JSON.stringify(checks.map(({ name, ok, detail }) => ({ name, ok, detail })));
  return `0x${createHash('sha256').update(text).digest('hex')}`;
}
