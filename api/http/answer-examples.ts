import { isObject } from '../../src/lib/json.js';

type Json = Readonly<Record<string, unknown>>;

/** Examples of texts in answers, by the name of their field; a schema's own example comes first. */
const BY_FIELD: ReadonlyMap<string, string> = new Map(
  Object.entries({
    action: 'search',
    address: '203.0.113.7',
    amount: '150.00',
    aiProvider: 'anthropic',
    alt: 'A street',
    answer: 'The shop is open',
    attestationUid: '0x9c1e',
    author: 'Ada',
    balance: '12.5',
    balanceRaw: '12500000',
    branch: 'main',
    byline: 'Ada Lovelace',
    cause: 'clone',
    chain: 'tempo',
    code: 'NOT_FOUND',
    commit: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b',
    content: 'Hello',
    counterparty: 'a5d1c1de-27c6-4b0c-8f0e-5b8a1f0c9d22',
    conversation: 'main',
    csrfToken: '4fJ2xQ',
    currency: 'USD',
    cursor: 'b2Zmc2V0',
    dashboardUrl: 'https://platform.example/dashboard?installation=ada',
    date: '2026-11-27',
    description: 'Searches the web',
    documentation: '/docs',
    domain: 'a.example',
    email: 'ada@example.com',
    endpoint: '/search',
    error: 'The agent is not running',
    failedVersion: '2026.9.6',
    finalUrl: 'https://news.example/a',
    frequency: '30m',
    from: '3f1c9f9e-6d1a-4c53-9a50-0d0f5f7f2a11',
    gate: 'holders',
    gateway: 'https://x402.example',
    genre: 'Ambient',
    hash: '9f86d08',
    headings: 'Background',
    homepage: 'https://news.ycombinator.com',
    host: 'local',
    href: 'https://news.example/b',
    image: 'openclaw:2026.9.6',
    key: 'ak_example',
    keyPreview: 'ak_…4f2a',
    label: 'Ada',
    language: 'en',
    lastLines: 'Ready',
    line: 'Ready',
    listenUrl: 'https://radio.example/3f1c9f9e-6d1a-4c53-9a50-0d0f5f7f2a11.mp3',
    markdown: '# News',
    maxFee: '1000000000',
    message: 'Done',
    model: 'claude-opus-4-6',
    name: 'my-agent',
    network: 'tempo',
    networkReason: 'No iptables',
    networks: 'tempo',
    next: '42',
    nonce: '8c1D0aZq',
    note: 'Paid by run',
    nowPlaying: 'Blue Train',
    openapi: '/openapi.json',
    openclawVersion: '2026.9.6',
    operation: 'restart',
    outcome: 'ok',
    owned_by: 'anthropic',
    paragraphs: 'It rains.',
    param: 'model',
    path: 'notes/today.md',
    pendingEmail: 'ada@example.com',
    period: 'month',
    plugin: 'x402',
    price: '0.25',
    protocolVersions: '2025-11-25',
    provider: 'anthropic',
    published: '2026-11-27',
    pushError: 'no remote',
    reason: 'Out of memory',
    reference: 'credits:42',
    referralCode: 'ADA42',
    refuses: 'a5d1c1de-27c6-4b0c-8f0e-5b8a1f0c9d22',
    repository: 'https://codehost.example/platform',
    schedule: '0 9 * * MON-FRI',
    secret: 'whsec_4fJ2xQ',
    service: 'web',
    signature: '0x5f2a',
    shortHash: '9f86d08',
    siteName: 'News',
    slug: 'weather',
    source: 'operator',
    src: 'https://news.example/a.png',
    staged: '+hello',
    status: 'running',
    statusReason: 'Out of memory',
    steps: 'Restart the client',
    subdomain: 'my-agent-1a2b3c4d',
    subject: 'notes',
    supportedChains: 'tempo',
    tags: 'coding',
    taskType: 'coding',
    text: 'Hello',
    threshold: '100',
    tier: 'gold',
    timestamp: '2026-11-27T12:00:00Z',
    timezone: 'Europe/Berlin',
    title: 'News',
    to: 'a5d1c1de-27c6-4b0c-8f0e-5b8a1f0c9d22',
    token: 'eyJhbGciOi',
    tool: 'agents_list',
    tool_name: 'browser',
    transaction: '0x5f2a',
    transactions: '0x5f2a',
    type: 'invalid_request_error',
    unreachable: 'frankfurt-1',
    unstaged: '+hello',
    url: 'https://a.example',
    userAgent: 'Firefox',
    venue: 'Town hall',
    verificationType: 'runtime',
    version: '2026.9.6',
    websocketUrl: 'wss://a.example',
  }),
);

/** The component of all ids. */
const ID = 'Id';
const ID_EXAMPLE = '0b7c4f1e-52a3-8d90-9e1f-6a2b3c4d5e6f';
const ID_SCHEMA: Json = { type: 'string', examples: [ID_EXAMPLE] };
const ID_FIELD = /^(?:id|[a-z]\w*(?:Id|_id))$/;

/**
 * Returns a schema of an answer whose plain texts have an example, from which tools compose an example of the whole
 * answer; `add` receives a component that the schema refers to.
 */
export function withExamples(schema: Json, add: (name: string, component: Json) => void): Json {
  const walk = (node: unknown, field: string): unknown => {
    if (Array.isArray(node)) return node.map((each) => walk(each, field));
    if (!isObject(node)) return node;
    if (isPlainText(node)) return exampleOf(node, field, add);
    return Object.fromEntries(
      Object.entries(node).map(([name, each]) => [
        name,
        name === 'properties' && isObject(each)
          ? Object.fromEntries(Object.entries(each).map(([own, of]) => [own, walk(of, own)]))
          : walk(each, field),
      ]),
    );
  };
  return walk(schema, '') as Json; // an object stays one
}

/** Reports whether a schema accepts any text, and maybe null, for which no example can be derived. */
function isPlainText(node: Readonly<Record<string, unknown>>): boolean {
  return (
    [node.type].flat()[0] === 'string' &&
    ['enum', 'const', 'format', 'pattern', 'examples', 'default'].every((each) => !(each in node))
  );
}

/** Returns the schema of a text with its example, or a reference to the component of ids. */
function exampleOf(
  node: Readonly<Record<string, unknown>>,
  field: string,
  add: (name: string, component: Json) => void,
): Json {
  if (ID_FIELD.test(field) && node.type === 'string') {
    add(ID, ID_SCHEMA);
    const { type: _text, ...rest } = node;
    return { ...rest, $ref: `#/components/schemas/${ID}` };
  }
  const example = ID_FIELD.test(field) ? ID_EXAMPLE : BY_FIELD.get(field);
  return example === undefined ? node : { ...node, examples: [example] };
}
