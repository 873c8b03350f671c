import { readFileSync } from 'node:fs';
import path from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { busText, prepared, type BusMessage } from '../../src/bus/bus-message.js';
import { recoveredSigner } from '../../src/money/chain/wallet-signature.js';

const page = readFileSync(path.join(projectRoot, 'docs', 'bus.md'), 'utf8');
const block = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n([^]*?)\\n\`\`\``).exec(page)?.[1] ?? '';

const vector = JSON.parse(block('json')) as {
  readonly privateKey: string;
  readonly address: string;
  readonly message: BusMessage;
  readonly signature: `0x${string}`;
};
const text = block('text');

test('the text of the worked example is the text that the bus verifies', async () => {
  expect(busText(prepared(vector.message).canonical)).toBe(text);
  expect(await recoveredSigner(text, vector.signature)).toBe(vector.address.toLowerCase());
});

test('the signature of the worked example is made and verified without our libraries', () => {
  const bytes = utf8ToBytes(text);
  const digest = keccak_256(
    concatBytes(utf8ToBytes(`\x19Ethereum Signed Message:\n${bytes.length}`), bytes),
  );
  const made = secp256k1.sign(digest, vector.privateKey.slice(2));
  const hex = `0x${made.toCompactHex()}${(27 + made.recovery).toString(16)}`;
  expect(hex).toBe(vector.signature);

  const given = hexToBytes(vector.signature.slice(2));
  const key = secp256k1.Signature.fromCompact(given.subarray(0, 64))
    .addRecoveryBit((given[64] ?? 0) - 27)
    .recoverPublicKey(digest)
    .toRawBytes(false);
  expect(`0x${bytesToHex(keccak_256(key.subarray(1)).subarray(-20))}`).toBe(
    vector.address.toLowerCase(),
  );
});
