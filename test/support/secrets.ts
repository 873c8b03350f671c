import { randomBytes } from 'node:crypto';
import { ringOf } from '../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../src/platform/secrets/secret-box.js';

/** Seals under a key that nobody else has. */
export const testSecrets = (): SecretBox => new SecretBox(ringOf(randomBytes(32)));
