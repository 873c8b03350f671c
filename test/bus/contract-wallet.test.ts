// @module-tag attack
import { randomUUID } from 'node:crypto';
import { serializeErc6492Signature, type Hex, type LocalAccount } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { broughtWalletText } from '../../src/money/wallets/agent-wallets.js';
import { lowerCaseOf } from '../../src/money/chain/address.js';
import { testChain, type TestChain } from '../support/chain/chain.js';
import { busSite, messageOf, textOf, type BusAgent, type BusSite } from './support.js';

let chain: TestChain;
let site: BusSite;
let bob: BusAgent;
/** An agent with a contract's wallet, and the owner of the contract. */
let ada: { readonly id: string; readonly holder: LocalAccount };

beforeAll(async () => {
  chain = await testChain();
  site = await busSite({ CHAIN_RPC_URL: chain.rpcUrl });
  bob = await site.agent();
  const { id: userId } = bob.owner;
  const holder = privateKeyToAccount(generatePrivateKey());
  const agentId = await site.agentOf(bob.owner);
  const address = lowerCaseOf(await chain.deployWallet(holder));
  const signature = await signed(holder, broughtWalletText({ userId, agentId }, address));
  const body = { userId, agentId, address, signature };
  const made = await site.backend(undefined, 'POST', '/api/underground/wallets', { body });
  expect(made.status).toBe(201);
  ada = { id: agentId, holder };
});
afterAll(async () => {
  await site?.close();
  await chain?.close();
});

/** Returns the signature of a holder's contract in the form of ERC-6492, which is no key's. */
async function signed(holder: LocalAccount, text: string): Promise<Hex> {
  const { address, data } = chain.deployment(holder);
  const signature = await holder.signMessage({ message: text });
  return serializeErc6492Signature({ address, data, signature });
}

const sent = async (holder: LocalAccount, message = messageOf(ada, bob)) =>
  site.post({ ...message, signature: await signed(holder, textOf(message)) });

test('a contract signs the messages of its agent', async () => {
  expect((await sent(ada.holder)).status).toBe(200);
});

test('the signature of another holder is refused', async () => {
  const { body, status } = await sent(privateKeyToAccount(generatePrivateKey()));
  expect([status, body]).toEqual([401, { error: 'Invalid signature' }]);
});

test("the key of the contract's holder does not sign by itself", async () => {
  const message = messageOf(ada, bob);
  const signature = await ada.holder.signMessage({ message: textOf(message) });
  expect((await site.post({ ...message, signature })).status).toBe(401);
});

test('the chain is not called for a wallet of a key', async () => {
  const away = await busSite({ CHAIN_RPC_URL: 'http://127.0.0.1:9' });
  try {
    const [from, to] = [await away.agent(), await away.agent()];
    const message = messageOf(from, to);
    const signature = await signed(ada.holder, textOf(message));
    expect((await away.post({ ...message, signature })).status).toBe(401);
    await away.rows(`UPDATE wallets SET is_contract = true WHERE agent_id = '${from.id}'`);
    const other = { ...message, messageId: randomUUID() };
    const answer = await away.post({
      ...other,
      signature: await signed(ada.holder, textOf(other)),
    });
    expect(answer.status).toBe(503);
  } finally {
    await away.close();
  }
});
