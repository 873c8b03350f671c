import { randomBytes } from 'node:crypto';
import { ringOf } from '../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../src/platform/secrets/secret-box.js';

/** Returns a secret box with a random key. */
export const testSecrets = (): SecretBox => new SecretBox(ringOf(randomBytes(32)));
