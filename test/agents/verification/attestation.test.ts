// @module-tag attack
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { recoverTypedDataAddress, serializeSignature, type Hex } from 'viem';
import { describe, expect, test } from 'vitest';
import { attest, type Attested } from '../../../src/agents/verification/attestation.js';

/** A vector that `@ethereum-attestation-service/eas-sdk` 2.10.0 signed, with its numbers as JSON has them. */
interface Vector {
  readonly input: Omit<Attested, 'measuredAt'> & {
    readonly seconds: number;
    readonly chainId: number;
    readonly verifyingContract: Hex;
    readonly privateKey: Hex;
  };
  readonly signer: Hex;
  readonly attestation: {
    readonly uid: Hex;
    readonly domain: { readonly chainId: string };
    readonly signature: object;
  };
}

const FILE = path.join(import.meta.dirname, 'eas-vectors.json');
// The file was written once by EAS's library.
const VECTORS = JSON.parse(readFileSync(FILE, 'utf8')) as readonly Vector[];

describe.each(VECTORS)('attestation $attestation.uid', ({ attestation, input, signer }) => {
  const { chainId, privateKey, seconds, verifyingContract, ...fields } = input;
  const attested = { ...fields, measuredAt: new Date(seconds * 1_000 + 999) };
  const ours = () => attest(attested, { chainId, verifyingContract }, privateKey);

  test("an attestation has the fields, the UID and the signature of EAS's own library", async () => {
    const { domain, ...made } = await ours();
    const { domain: expected, ...others } = attestation;
    expect(made).toEqual({ signer, ...others });
    expect({ ...domain, verifyingContract: domain.verifyingContract.toLowerCase() }).toEqual({
      ...expected,
      chainId,
    });
  });

  test('an attestation is signed by the key, over its typed data', async () => {
    const { domain, message, primaryType, signature, types } = await ours();
    const { r, s, v } = signature;
    const recovered = await recoverTypedDataAddress({
      domain,
      types,
      primaryType,
      message: { ...message, time: BigInt(message.time), expirationTime: 0n },
      signature: serializeSignature({ r, s, v: BigInt(v) }),
    });
    expect(recovered).toBe(signer);
  });

  test('differs in UID and signature when a field differs', async () => {
    const before = await ours();
    const after = await attest(
      { ...attested, passed: !attested.passed },
      { chainId, verifyingContract },
      privateKey,
    );
    expect(after.uid).not.toBe(before.uid);
    expect(after.signature).not.toEqual(before.signature);
  });
});
