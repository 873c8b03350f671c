/**
 * Who may import whom (docs/architecture.md, "Rooms"), type-only imports included, and that nothing
 * imports itself by way of others. `npm test` checks it.
 */

/** All that runs in production. */
const PRODUCT = ['src', 'api', 'workflows', 'activities', 'temporal', 'worker'];
/** All that does not. */
const WORKSHOP = ['dev', 'scripts', 'bench', 'test'];

const within = (rooms) => `^(${rooms.join('|')})/`;
const NPM = 'node_modules';

/** A room, and the only rooms that it may import from beside itself. */
function mayImport(room, others, comment) {
  const rooms = [room, ...others];
  return {
    name: `rooms-of-${room}`,
    severity: 'error',
    comment,
    from: { path: within([room]) },
    to: { path: within([...PRODUCT, ...WORKSHOP].filter((each) => !rooms.includes(each))) },
  };
}

export default {
  forbidden: [
    {
      name: 'no-circles',
      severity: 'error',
      comment: 'Files that need each other are one file, or miss a third one.',
      from: {},
      to: { circular: true },
    },
    mayImport('src', [], 'The domain knows neither HTTP nor Temporal.'),
    mayImport('activities', ['src'], 'Activities use the domain alone.'),
    mayImport('workflows', ['src', 'activities'], 'Workflows import next to nothing.'),
    mayImport('temporal', ['src', 'workflows'], 'The client side of Temporal.'),
    mayImport('api', ['src', 'temporal'], 'The API reaches Temporal by its client side.'),
    mayImport(
      'worker',
      ['src', 'workflows', 'activities', 'temporal'],
      'Workers know nothing of HTTP.',
    ),
    mayImport('dev', ['src'], "What starts a developer's machine knows the domain alone."),
    mayImport(
      'bench',
      ['src', 'workflows', 'dev', 'test'],
      'Benchmarks run the product as a program.',
    ),
    {
      name: 'product-alone',
      severity: 'error',
      comment: 'What production runs needs nothing that it does not have.',
      from: { path: '^scripts/(admin-links|check-ledger|migrate|rotate-keys)\\.ts$' },
      to: { path: within(WORKSHOP) },
    },
    {
      name: 'domain-without-frameworks',
      severity: 'error',
      comment: 'The domain knows neither HTTP nor Temporal.',
      from: { path: within(['src']) },
      to: { path: `(^|/)${NPM}/(koa|@koa/|@types/koa|koa-|passport|@temporalio/)` },
    },
    {
      name: 'keys-where-they-sign',
      severity: 'error',
      comment: "Nothing but the process that makes payments opens a wallet's key.",
      from: { path: within(PRODUCT), pathNot: '^(src/payment-services|worker/payments)\\.ts$' },
      to: {
        path: '^src/(wallets/open-key|payment-services)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'messages-of-workflows',
      severity: 'error',
      comment: "Of the workflows, others know types, ids and messages: their code is Temporal's.",
      from: { path: within(['temporal']) },
      to: {
        path: '^workflows/',
        pathNot: '^workflows/(ids|search-attributes|[a-z-]+-messages)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'workflows-know-types',
      severity: 'error',
      comment: 'Every import costs memory in each cached workflow: pure rules only.',
      from: { path: '^workflows/' },
      to: {
        path: within(['src', 'activities']),
        pathNot: '^src/agents/(operation-kinds|watchdog)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'workflows-are-deterministic',
      severity: 'error',
      comment: 'Workflows import next to nothing.',
      from: { path: '^workflows/' },
      to: { dependencyTypesNot: ['local'], pathNot: `(^|/)${NPM}/@temporalio/(workflow|common)/` },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: NPM },
    exclude: { path: '^(dist|dist-dev|agent-runtime|\\.data|\\.git)/' },
    enhancedResolveOptions: { conditionNames: ['import', 'require', 'node', 'default', 'types'] },
  },
};
