import { serializeSignature, parseSignature, toHex, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { CallRevertedError, ChainAwayError } from '../../../src/money/chain/chain-node.js';
import {
  HoldSignature,
  holdTypedData,
  isInTime,
  latestDeadline,
  newNonce,
  type Hold,
} from '../../../src/money/sessions/hold-authorization.js';

const DOMAIN = { chainId: 4217, escrow: `0x${'e5'.repeat(20)}` } as const;

/** Order of the curve. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const wallet = privateKeyToAccount(generatePrivateKey());
const hold: Hold = {
  payer: wallet.address.toLowerCase() as Hex, // an address is a Hex
  amount: 5_000_000n,
  nonce: newNonce(),
  deadline: latestDeadline(),
};
const sign = () => wallet.signTypedData(holdTypedData(DOMAIN, hold));

/** Returns a chain without a contract at the wallet's address, or with the given contract answer. */
const answering = (answer: () => Promise<Hex> = () => Promise.resolve('0x')) => ({ call: answer });

const isSigned = (signature: Hex, node = answering(), signed: Hold = hold) =>
  new HoldSignature(DOMAIN, signed, signature, node).isOfWallet();

describe('hold authorizations', () => {
  test('accepts a deadline up to an hour ahead, and refuses an authorization in its last second', () => {
    const now = Date.UTC(2026, 0, 1);
    const seconds = BigInt(now / 1_000);
    const ends = [0n, 1n, 3_600n, 3_601n].map((ahead) => isInTime(seconds + ahead, now));
    expect(ends).toEqual([false, true, true, false]);
  });

  test('verifies the signature of a key without the chain', async () => {
    const away = answering(() => Promise.reject(new ChainAwayError()));
    expect(await isSigned(await sign(), away)).toBe(true);
    const another = isSigned(await sign(), away, { ...hold, amount: 5_000_001n });
    await expect(another).rejects.toBeInstanceOf(ChainAwayError);
  });

  test(
    'accepts a signature only in the form that the escrow accepts',
    { tags: 'attack' },
    async () => {
      const signature = await sign();
      const { r, s, yParity } = parseSignature(signature);
      const forged: Hex[] = [
        // The second valid signature of the same key and text (malleability).
        serializeSignature({ r, s: toHex(ORDER - BigInt(s), { size: 32 }), yParity: 1 - yParity }),
        // The last byte is 0 or 1 instead of 27 or 28.
        `0x${signature.slice(2, -2)}0${yParity}`,
        `${signature}00`,
        '0x',
      ];
      for (const each of forged) expect(await isSigned(each)).toBe(false);
    },
  );

  test('calls the code of the wallet once, and only after checking its key', async () => {
    let asked = 0;
    const node = answering((): Promise<Hex> => {
      asked++;
      return Promise.resolve(`0x1626ba7e${'0'.repeat(56)}` as const);
    });
    const [ofKey, ofCode] = [await sign(), '0x01' as const].map(
      (signature) => new HoldSignature(DOMAIN, hold, signature, node),
    );
    expect([await ofKey?.isOfWallet(), asked]).toEqual([true, 0]);
    expect([await ofKey?.isValidForContract(), asked]).toEqual([true, 1]);
    expect([await ofCode?.isOfWallet(), await ofCode?.isValidForContract()]).toEqual([true, true]);
    expect(asked).toBe(2);
  });

  test(
    'accepts a contract signature only if the contract answers with the exact magic value',
    { tags: 'attack' },
    async () => {
      const magic = `1626ba7e${'0'.repeat(56)}`;
      const says = (answer: Hex) =>
        isSigned(
          '0x01',
          answering(() => Promise.resolve(answer)),
        );
      expect(await says(`0x${magic}`)).toBe(true);
      for (const answer of ['0x', '0x1626ba7e', `0x${magic}00`, `0x${'0'.repeat(64)}`] as const) {
        expect(await says(answer)).toBe(false);
      }
      const refusing = answering(() => Promise.reject(new CallRevertedError()));
      expect(await isSigned('0x01', refusing)).toBe(false);
    },
  );
});
