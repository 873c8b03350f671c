// @module-tag attack
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serializeErc6492Signature, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, type LocalAccount } from 'viem/accounts';
import type { SiweMessage } from 'viem/siwe';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { NONCE_LIFETIME_MS, WalletNonces } from '../../../src/accounts/accounts/wallet-nonces.js';
import { WalletProofs, type WalletClaim } from '../../../src/accounts/accounts/wallet-proofs.js';
import { ChainAwayError, ChainNode } from '../../../src/money/chain/chain-node.js';
import { Database } from '../../../src/platform/database/database.js';
import { BadRequestError } from '../../../src/lib/errors.js';
import { CHAIN_ID, testChain, type TestChain } from '../../support/chain/chain.js';
import { siweMessage, WEB_URL } from '../../support/chain/siwe.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';
import { testSecrets } from '../../support/secrets.js';

const OTHER_CHAIN = 84_532;
const secrets = testSecrets();

let database: TestDatabase;
let chain: TestChain;
let proofs: WalletProofs;
let owner: LocalAccount;

/** Creates the wallet proofs of one API process. */
const proofsOf = (db: Database, rpcUrl: string | undefined, chainId = CHAIN_ID) =>
  new WalletProofs({
    nonces: new WalletNonces(db, secrets),
    chain: new ChainNode({ chainId, url: rpcUrl }),
    chainIds: [CHAIN_ID, OTHER_CHAIN],
    webUrl: WEB_URL,
  });

beforeAll(async () => {
  [database, chain] = await Promise.all([testDatabase(), testChain()]);
  proofs = proofsOf(database.db, chain.rpcUrl);
});
afterAll(() => Promise.all([database?.close(), chain?.close()]));
beforeEach(() => {
  owner = newOwner();
});

const newOwner = () => privateKeyToAccount(generatePrivateKey());
const nonce = () => proofs.nonces.issue().nonce;
const inLowerCase = (address: string) => address.toLowerCase();
const minutes = (count: number) => new Date(Date.now() + count * 60_000);

/** Builds a sign-in message and signs it with the owner's key. */
async function signed(
  said: Partial<SiweMessage> = {},
  address: Hex = owner.address,
  change = (text: string) => text,
): Promise<WalletClaim & { readonly signature: Hex }> {
  const message = change(siweMessage({ address, nonce: nonce(), ...said }));
  return { address, message, signature: await owner.signMessage({ message }) };
}

/** Builds the proof of the owner's contract wallet, which may not be deployed yet. */
async function signedByContract(said: Partial<SiweMessage> = {}): Promise<WalletClaim> {
  const shown = await signed(said, chain.walletOf(owner));
  const { address, data } = chain.deployment(owner);
  const { signature } = shown;
  return { ...shown, signature: serializeErc6492Signature({ address, data, signature }) };
}

describe('a wallet is proven', () => {
  test('proves a wallet by its key without a chain', async () => {
    const here = proofsOf(database.db, undefined);
    expect(await here.verify(await signed(), '192.0.2.1')).toBe(inLowerCase(owner.address));
  });

  test('proves a wallet for each configured chain', async () => {
    const shown = await signed({ chainId: OTHER_CHAIN });
    expect(await proofs.verify(shown, '192.0.2.1')).toBe(inLowerCase(owner.address));
  });

  test('proves a wallet by a message with all fields of EIP-4361', async () => {
    const shown = await signed({
      scheme: 'http',
      statement: 'I sign in to this service.',
      uri: `${WEB_URL}/login`,
      expirationTime: minutes(5),
      notBefore: minutes(-1),
      requestId: 'a-request',
      resources: ['https://example.com/terms', 'ipfs://bafy'],
    });
    expect(await proofs.verify(shown, '192.0.2.1')).toBe(inLowerCase(owner.address));
  });

  test('proves a wallet whose address is in upper or lower case', async () => {
    const shown = await signed();
    const address = `0x${owner.address.slice(2).toUpperCase()}`;
    expect(await proofs.verify({ ...shown, address }, '192.0.2.1')).toBe(
      inLowerCase(owner.address),
    );
  });

  test('proves a contract wallet (ERC-1271)', async () => {
    const address = await chain.deployWallet(owner);
    expect(await proofs.verify(await signed({}, address), '192.0.2.1')).toBe(inLowerCase(address));
  });

  test('proves a contract wallet that is not deployed yet (ERC-6492)', async () => {
    const shown = await signedByContract();
    expect(await proofs.verify(shown, '192.0.2.1')).toBe(inLowerCase(chain.walletOf(owner)));
  });
});

describe('a wallet that is not proven', () => {
  test.each<[string, () => Partial<SiweMessage>]>([
    ['for another domain', () => ({ domain: 'evil.example' })],
    ['for another port of our host', () => ({ domain: '127.0.0.1:3001' })],
    ['for another scheme', () => ({ scheme: 'https' })],
    ['for another URI', () => ({ uri: 'https://evil.example' })],
    ['for a URI that only begins like ours', () => ({ uri: `${WEB_URL}.evil.example/` })],
    ['for a URI that names us as its user', () => ({ uri: `${WEB_URL}@evil.example/` })],
    ['for another chain', () => ({ chainId: 1 })],
    ['by a message of 11 minutes ago', () => ({ issuedAt: minutes(-11) })],
    ['by a message of the future', () => ({ issuedAt: minutes(2) })],
    ['by a message that has expired', () => ({ expirationTime: minutes(-0.01) })],
    ['by a message that does not hold yet', () => ({ notBefore: minutes(2) })],
    ['with a nonce that is not ours', () => ({ nonce: 'a'.repeat(72) })],
    ['with a nonce of ours that is changed', () => ({ nonce: nonce().replace(/^./, changed) })],
    [
      'with a nonce that is said to last longer',
      () => ({ nonce: nonce().replace(/(?<=^.{32})./, changed) }),
    ],
    [
      'with a nonce that has ended',
      () => ({ nonce: proofs.nonces.issue(Date.now() - NONCE_LIFETIME_MS).nonce }),
    ],
  ])('%s', async (_, said) => {
    expect(await proofs.verify(await signed(said()), '192.0.2.1')).toBeUndefined();
  });

  test.each([
    ['a lower-case t and z', (time: string) => time.toLowerCase()],
    ['a long fraction', (time: string) => time.replace(/\.\d+/, '.123456789012345678')],
    ['an offset', (time: string) => time.replace('Z', '+00:00')],
    ['no fraction', (time: string) => time.replace(/\.\d+/, '')],
  ])('proves a wallet by a message whose time has %s', async (_, form) => {
    const change = (text: string) =>
      text.replace(/(?<=Issued At: )\S+/, () => form(minutes(-1).toISOString()));
    const shown = await signed({}, owner.address, change);
    expect(await proofs.verify(shown, '192.0.2.1')).toBe(inLowerCase(owner.address));
  });

  test.each(['9998-02-30T00:00:00Z', '9999-13-01T00:00:00Z', '9999-01-01T24:00:00Z'])(
    'rejects a message that expires at %s, which no calendar has',
    async (time) => {
      const change = (text: string) => text.replace(/(?<=Expiration Time: )\S+/, () => time);
      const shown = await signed({ expirationTime: minutes(5) }, owner.address, change);
      await expect(proofs.verify(shown, '192.0.2.1')).rejects.toThrow(BadRequestError);
    },
  );

  test('does not prove a wallet by a message of another version', async () => {
    const inTwo = (text: string) => text.replace('Version: 1', 'Version: 2');
    expect(
      await proofs.verify(await signed({}, owner.address, inTwo), '192.0.2.1'),
    ).toBeUndefined();
  });

  test('does not prove a wallet by another key', async () => {
    const { message } = await signed();
    const signature = await newOwner().signMessage({ message });
    const shown = { address: owner.address, message, signature };
    expect(await proofs.verify(shown, '192.0.2.1')).toBeUndefined();
  });

  test('does not prove a wallet by a signature of another message', async () => {
    const [{ message }, { signature }] = [await signed(), await signed()];
    const shown = { address: owner.address, message, signature };
    expect(await proofs.verify(shown, '192.0.2.1')).toBeUndefined();
  });

  test('does not prove a contract wallet of another owner, deployed or not', async () => {
    const theirs = newOwner();
    const shown = await signedByContract();
    const { message } = shown;
    const wrapped = serializeErc6492Signature({
      ...chain.deployment(owner),
      signature: await theirs.signMessage({ message }),
    });
    expect(await proofs.verify({ ...shown, signature: wrapped }, '192.0.2.1')).toBeUndefined();
    await chain.deployWallet(owner);
    const signature = await theirs.signMessage({ message });
    expect(await proofs.verify({ ...shown, signature }, '192.0.2.1')).toBeUndefined();
  });

  test('does not prove a contract wallet whose deployment yields a different address', async () => {
    const shown = await signedByContract();
    const message = siweMessage({ address: newOwner().address, nonce: nonce() });
    const [, address = ''] = message.split('\n');
    const signature = serializeErc6492Signature({
      ...chain.deployment(owner),
      signature: await owner.signMessage({ message }),
    });
    expect(
      await proofs.verify({ ...shown, address, message, signature }, '192.0.2.1'),
    ).toBeUndefined();
  });

  test('does not prove a contract wallet for a chain where its address may belong to another owner', async () => {
    const shown = await signedByContract({ chainId: OTHER_CHAIN });
    expect(await proofs.verify(shown, '192.0.2.1')).toBeUndefined();
  });
});

const changed = (digit: string) => (digit === 'f' ? 'e' : 'f');

describe('a nonce', () => {
  test('a nonce consists of letters and digits and is different each time', () => {
    const [one, other] = [nonce(), nonce()];
    expect(one).toMatch(/^[a-z\d]{72}$/);
    expect(one.slice(0, 32)).not.toBe(other.slice(0, 32));
  });

  test('one of 50 concurrent uses of a nonce in two processes succeeds', async () => {
    const other = new Database(database.url, { maxConnections: 5 });
    try {
      const elsewhere = proofsOf(other, undefined);
      const shown = await signed();
      const tries = Array.from({ length: 50 }, (_, n) =>
        (n % 2 === 0 ? proofs : elsewhere).verify(shown, '192.0.2.1'),
      );
      const proven = (await Promise.all(tries)).filter((address) => address !== undefined);
      expect(proven).toEqual([inLowerCase(owner.address)]);
      expect(await proofs.verify(shown, '192.0.2.1')).toBeUndefined();
    } finally {
      await other.close();
    }
  });

  test('a proof with a wrong signature does not use up the nonce', async () => {
    const shown = await signed();
    const signature = await newOwner().signMessage({ message: shown.message });
    expect(await proofs.verify({ ...shown, signature }, '192.0.2.1')).toBeUndefined();
    expect(await proofs.verify(shown, '192.0.2.1')).toBe(inLowerCase(owner.address));
  });

  test('a nonce is not stored before its use, and then as a hash only', async () => {
    const count = async () => (await database.db.asPlatform().query(STORED)).length;
    const before = await count();
    const shown = await signed();
    expect(await count()).toBe(before);
    await proofs.verify(shown, '192.0.2.1');
    expect(await count()).toBe(before + 1);
    const text = JSON.stringify(await database.db.asPlatform().query(STORED));
    expect(text).not.toContain(/Nonce: (\w+)/.exec(shown.message)?.[1]);
  });
});

const STORED = 'SELECT * FROM used_nonces';

describe('reports a malformed proof', () => {
  test.each<[string, (shown: WalletClaim) => Partial<WalletClaim>]>([
    ['no address', () => ({ address: 'ada.eth' })],
    ['an address that is too short', ({ address }) => ({ address: address.slice(0, -1) })],
    ['another address than that of the message', () => ({ address: newOwner().address })],
    ['no sign-in message', () => ({ message: 'I am Ada' })],
    ['lines before it', ({ message }) => ({ message: `Sign this:\n${message}` })],
    ['lines after it', ({ message }) => ({ message: `${message}\nand send all that I have` })],
    [
      'lines in between',
      ({ message }) => ({ message: message.replace('\n\nURI', '\n\nThis is harmless.\n\n\nURI') }),
    ],
    ['no date', ({ message }) => ({ message: message.replace(/(?<=At: )....-../, '2026-13') })],
    ['no hex', () => ({ signature: 'signed' })],
    ['half a byte', ({ signature }) => ({ signature: signature.slice(0, -1) })],
    ['no signature at all', () => ({ signature: '0x' })],
  ])('%s', async (_, change) => {
    const shown = await signed();
    const refused = proofs.verify({ ...shown, ...change(shown) }, '192.0.2.1');
    await expect(refused).rejects.toThrow(BadRequestError);
  });
});

describe('proofs while the chain is unavailable', () => {
  /** Starts a node that answers with this text, or never. */
  async function badNode(answer?: string): Promise<{ url: string; close(): void }> {
    const server = createServer((_, response) => {
      if (answer === undefined) return;
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo; // a TCP address is never a string
    return {
      url: `http://127.0.0.1:${port}`,
      close() {
        server.closeAllConnections();
        server.close();
      },
    };
  }
  const refusal = (rpcUrl: string | undefined, shown: WalletClaim, chainId = CHAIN_ID) =>
    expect(proofsOf(database.db, rpcUrl, chainId).verify(shown, '192.0.2.1')).rejects.toThrow(
      ChainAwayError,
    );

  test("a contract's proof fails as unavailable and succeeds later with the same message", async () => {
    const shown = await signedByContract();
    await refusal(undefined, shown);
    await refusal('http://127.0.0.1:1', shown);
    expect(await proofs.verify(shown, '192.0.2.1')).toBe(inLowerCase(chain.walletOf(owner)));
  });

  test('does not wait for a node that never answers', async () => {
    const node = await badNode();
    try {
      await refusal(node.url, await signedByContract());
    } finally {
      node.close();
    }
  });

  test.each(['{}', 'null', '{"result":"yes"}', '{"error":{"code":-32005}}', 'not JSON'])(
    'a node that answers %s counts as unavailable',
    async (answer) => {
      const node = await badNode(answer);
      try {
        await refusal(node.url, await signedByContract());
      } finally {
        node.close();
      }
    },
  );

  test('a node of another chain counts as unavailable', async () => {
    await refusal(chain.rpcUrl, await signedByContract({ chainId: OTHER_CHAIN }), OTHER_CHAIN);
  });
});
