import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { backendEndpoints } from '../../api/backend/backend.js';
import { formatOf } from '../../api/http/body-format.js';
import type { Endpoint } from '../../api/http/endpoint.js';
import { schemaOf } from '../../api/http/presenter.js';
import { summarizerEndpoints } from '../../api/summarizer/summarizer.js';
import { answeredAddress, chainAddress, addressToFind } from '../../api/views/chain-address.js';
import { webEndpoints } from '../../api/web/web.js';
import { parseAddress, shownAddress } from '../../src/money/chain/address.js';
import { loadSettings } from '../../src/settings.js';
import { resolved } from '../fuzz/document.js';
import { databaseAlone } from '../support/dependencies.js';
import { testEnvironment } from '../support/platform-environment.js';
import { testDatabase, type TestDatabase } from '../support/postgres.js';
import { COLUMNS, catalogFacts } from '../platform/database/catalog.js';

/** Addresses of EIP-55. */
const RIGHT = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0xde709f2102306220921060314715629080e2fb77',
] as const;
const [SHOWN] = RIGHT;
const LOWER = SHOWN.toLowerCase();
const UPPER = `0x${SHOWN.slice(2).toUpperCase()}`;
const MISTYPED = SHOWN.replace('aA', 'Aa');

const PATTERN = String.raw`^0x[\da-fA-F]{40}$`;

let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let endpoints: readonly (readonly [string, Endpoint])[];

beforeAll(async () => {
  database = await testDatabase();
  alone = await databaseAlone(database);
  const { dependencies } = alone;
  const { settings } = dependencies;
  const named = (listener: string, all: readonly Endpoint[]) =>
    all.map((each) => [`${listener}: ${each.method} ${each.path}`, each] as const);
  endpoints = [
    ...named('web', webEndpoints(dependencies)),
    ...named('backend', backendEndpoints(dependencies)),
    ...named(
      'summarizer',
      summarizerEndpoints({
        chain: settings.chain,
        http: settings.http,
        log: pino({ level: 'silent' }),
        // Only the declarations are read.
        pages: {} as Parameters<typeof summarizerEndpoints>[0]['pages'],
      }),
    ),
  ];
});
afterAll(async () => {
  await alone?.close();
  await database?.close();
});

interface Field {
  readonly path: readonly string[];
  readonly isAddress: boolean;
}

/** Returns the text fields of a schema; an entry of a list has the name `0`. */
function textsOf(schema: z.ZodType, io: 'input' | 'output'): Field[] {
  const fields: Field[] = [];
  const walk = (node: unknown, path: readonly string[]): void => {
    if (typeof node !== 'object' || node === null) return;
    const { properties, items, pattern, type, anyOf, oneOf, allOf } = node as Record<string, never>;
    if (type === 'string') fields.push({ path, isAddress: pattern === PATTERN });
    for (const part of [anyOf, oneOf, allOf]) {
      for (const each of (part ?? []) as unknown[]) walk(each, path);
    }
    for (const [name, each] of Object.entries(properties ?? {})) walk(each, [...path, name]);
    if (items !== undefined) walk(items, [...path, '0']);
  };
  walk(resolved(z.toJSONSchema(schema, { io, unrepresentable: 'any' })), []);
  return fields;
}

/** Names of fields that may be addresses of a chain. */
const NAMES = /address$|^(?:payTo|payer|treasury|escrow|operator|signer|token|from|to|wallet)$/i;

/** Fields of answers with such a name that are something else. */
const OTHERS = [
  // Addresses of the internet.
  'web: GET /api/auth/sessions sessions.0.address',
  // Secrets.
  'web: POST /api/auth/farcaster/verify token',
  'web: POST /api/auth/farcaster/refresh token',
  'web: GET /api/auth/farcaster/verify body.token',
  'web: GET /api/auth/farcaster/refresh body.token',
  'web: GET /api/agents/:id/token token',
  'backend: GET /api/agents/:id/token token',
  // States of an agent, and names of files.
  ...['web', 'backend'].flatMap((listener) => [
    `${listener}: GET /api/agents/:id/operations transitions.0.from`,
    `${listener}: GET /api/agents/:id/operations transitions.0.to`,
    `${listener}: GET /api/browse/git-status changes.0.from`,
  ]),
  // Times.
  'backend: GET /api/metrics/:userId/historical from',
  'backend: GET /api/metrics/:userId/historical to',
  // Days, and any node of a graph.
  ...['from', 'to'].flatMap((end) => [
    `web: GET /api/mission-control/fleet/costs ${end}`,
    `web: GET /api/mission-control/fleet/graph edges.0.${end}`,
  ]),
  // Agents.
  ...['from', 'to'].flatMap((party) => [
    `backend: POST /api/underground/bus/sign ${party}`,
    `backend: GET /api/underground/bus/messages/:messageId ${party}`,
  ]),
];

test('every address in an answer is declared with its checksum', () => {
  const found = endpoints.flatMap(([name, { responses }]) =>
    Object.values(responses).flatMap((declared) => {
      const schema = schemaOf(declared);
      const texts = schema ? textsOf(schema, 'output') : [];
      return texts.map(({ isAddress, path }) => ({ isAddress, name, path }));
    }),
  );
  const undeclared = found
    .filter(({ isAddress, path }) => !isAddress && NAMES.test(path.at(-1) ?? ''))
    .map(({ name, path }) => `${name} ${path.join('.')}`);
  expect([...new Set(undeclared)].filter((field) => !OTHERS.includes(field))).toEqual([]);
  expect(found.filter(({ isAddress }) => isAddress).length).toBeGreaterThan(30);
});

/** Addresses in requests: `checked` ones receive something or are stored, others are only looked up. */
const REQUESTED: Readonly<Record<string, 'checked' | 'any case'>> = {
  'web: POST /api/wallet-auth body address': 'checked',
  'web: POST /api/settings/identities/wallet body address': 'checked',
  'web: POST /api/wallet/sessions body address': 'checked',
  'web: POST /api/agents/clone body paymentProof.from': 'checked',
  'web: POST /api/agents/clone body paymentProof.to': 'checked',
  'web: POST /api/skills/instant-split body recipients.0.address': 'checked',
  'web: POST /api/skills/booking-settlement body recipients.0.address': 'checked',
  'backend: POST /api/agents/clone body paymentProof.from': 'checked',
  'backend: POST /api/agents/clone body paymentProof.to': 'checked',
  'backend: POST /api/underground/wallets body address': 'checked',
  'backend: POST /api/underground/splits body fromAddress': 'checked',
  'backend: POST /api/underground/splits body recipients.0.address': 'checked',
  'web: GET /api/wallet query address': 'any case',
  'web: GET /api/wallet/sessions query address': 'any case',
  'web: GET /api/auth/token-gating/verify query address': 'any case',
  'web: POST /api/auth/token-gating/verify body address': 'any case',
  'backend: GET /api/underground/wallets/:address/balance params address': 'any case',
};

const PARTS = ['params', 'query', 'headers', 'body'] as const;

const partOf = (endpoint: Endpoint, part: (typeof PARTS)[number]): z.ZodType | undefined =>
  part === 'body' ? endpoint.body && formatOf(endpoint.body).schema : endpoint[part];

/** Returns a value with `text` at a path, and nothing else. */
const valueAt = ([name, ...rest]: readonly string[], text: string): unknown => {
  if (name === undefined) return text;
  return name === '0' ? [valueAt(rest, text)] : { [name]: valueAt(rest, text) };
};

/** Returns a schema's error for the field at a path; undefined without an error. */
function objection(schema: z.ZodType, path: readonly string[], text: string): string | undefined {
  const issues = schema.safeParse(valueAt(path, text)).error?.issues ?? [];
  return issues.find((issue) => issue.path.map(String).join('.') === path.join('.'))?.message;
}

describe('addresses in requests', { tags: 'attack' }, () => {
  test('every address field of a request is listed, and accepts a wrong checksum only for lookups', () => {
    const found: string[] = [];
    for (const [name, endpoint] of endpoints) {
      for (const part of PARTS) {
        const schema = partOf(endpoint, part);
        if (!schema || !(schema instanceof z.ZodType)) continue;
        for (const { isAddress, path } of textsOf(schema, 'input')) {
          const field = `${name} ${part} ${path.join('.')}`;
          if (!isAddress) {
            expect([field, NAMES.test(path.at(-1) ?? '') && !NO_ADDRESSES.test(field)]).toEqual([
              field,
              false,
            ]);
            continue;
          }
          found.push(field);
          for (const text of [SHOWN, LOWER, UPPER]) {
            expect([field, objection(schema, path, text)]).toEqual([field, undefined]);
          }
          expect([field, objection(schema, path, `${SHOWN}0`)]).not.toEqual([field, undefined]);
          const reported = objection(schema, path, MISTYPED);
          expect([field, reported === undefined ? 'any case' : 'checked']).toEqual([
            field,
            REQUESTED[field],
          ]);
          if (reported !== undefined) expect(reported).toContain('checksum');
        }
      }
    }
    expect(found.toSorted()).toEqual(Object.keys(REQUESTED).toSorted());
  });
});

/** Fields of requests with such a name that are something else: secrets, and agents. */
const NO_ADDRESSES = /[ .]token$|\/bus\/.*\b(?:from|to)$/;

test.each(RIGHT)('recognizes %s by its checksum and by a single letter case', (address) => {
  const lower = address.toLowerCase();
  const upper = `0x${address.slice(2).toUpperCase()}`;
  expect([address, lower, upper].map(parseAddress)).toEqual([lower, lower, lower]);
  expect([lower, upper, address].map(shownAddress)).toEqual([address, address, address]);
});

test.each([
  MISTYPED,
  LOWER.replace('a', 'A'),
  SHOWN.slice(0, -1),
  `${SHOWN}0`,
  SHOWN.slice(2),
  `0X${SHOWN.slice(2)}`,
  ` ${SHOWN}`,
  SHOWN.replace('5', 'g'),
  '',
])('refuses "%s" as an address', (text) => {
  expect(parseAddress(text)).toBeUndefined();
  expect(chainAddress.safeParse(text).success).toBe(false);
});

test('answers an address only with its checksum, and looks up any letter case', () => {
  expect([SHOWN, LOWER, UPPER].map((text) => answeredAddress.safeParse(text).success)).toEqual([
    true,
    false,
    false,
  ]);
  expect(addressToFind.parse(MISTYPED)).toBe(LOWER);
});

test.each([
  'TREASURY_ADDRESS',
  'OPERATOR_ADDRESS',
  'ESCROW_ADDRESS',
  'USDC_ADDRESS',
  'PLATFORM_TOKEN_ADDRESS',
])('refuses a wrong checksum in %s, which receives or moves money', (name) => {
  const load = (value: string) => () =>
    loadSettings(testEnvironment({ DATABASE_URL: database.url }, { [name]: value }));
  for (const right of [SHOWN, LOWER, UPPER]) expect(load(right)).not.toThrow();
  expect(load(MISTYPED)).toThrow(name);
});

/** Columns with an address of the chain, each with the source of its values. */
const STORED: Readonly<Record<string, string>> = {
  'wallets.address': 'a key that is sealed here, the wallet provider, or a checked request',
  'payment_sessions.address': 'a checked request',
  'payment_sessions.escrow': 'ESCROW_ADDRESS',
  'payments.signer': 'a key that is sealed here, or OPERATOR_ADDRESS',
  'transactions.signer': 'payments.signer',
  'transactions.fee_payer': 'the chain',
  'clones.payer': 'a checked request',
  'royalty_splits.from_address': 'wallets.address',
  'royalty_splits.token_address': 'USDC_ADDRESS',
  'royalty_payouts.address': 'a checked request',
  'farcaster_tokens.address': 'a proof of the Farcaster server, checked as well',
};

/** Columns with such a name that hold something else: addresses of mail and of the internet, tokens. */
const STORED_OTHERS = /^(?:mails|sessions|sign_in_\w+|audit_log|hosts)\./;

test('every stored address comes from a checked source', async () => {
  const facts = await catalogFacts(database.ownerUrl, COLUMNS);
  const found = facts
    .map((fact) => /^(\w+) (\w*(?:address|signer|escrow|payer|payee|treasury)) /.exec(fact))
    .flatMap((match) => (match ? [`${match[1]}.${match[2]}`] : []))
    .filter((column) => !STORED_OTHERS.test(column));
  expect(found.toSorted()).toEqual(Object.keys(STORED).toSorted());
});
