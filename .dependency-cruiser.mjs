/**
 * Allowed imports between rooms and between the groups of `src/` (docs/architecture.md, "Rooms"), imports
 * of types included. `npm test` checks these rules.
 */

/** Groups of `src/`, lowest first: a group imports itself and the groups before it. */
const LAYERS = [
  ...['lib', 'types', 'platform', 'notifications', 'workspace', 'docker', 'money'],
  ...['accounts', 'billing', 'ai', 'pages', 'feeds', 'skills', 'agents', 'bus', 'swarms'],
  ...['videos', 'radio', 'fleet', 'gateway', 'retention', 'account-lifecycle', 'doctor'],
];

/** Rooms that run in production. */
const PRODUCT = ['src', 'api', 'workflows', 'activities', 'temporal', 'worker'];
/** Rooms that do not run in production. */
const WORKSHOP = ['dev', 'scripts', 'bench', 'test'];

const within = (rooms) => `^(${rooms.join('|')})/`;
const NPM = 'node_modules';

/** Returns the rule that a group imports neither a later group nor the composition files of `src/`. */
function importsDownwards(group, index) {
  const later = LAYERS.slice(index + 1).map((each) => `^src/${each}/`);
  return {
    name: `layer-of-${group}`,
    severity: 'error',
    comment: 'The groups of src/ are layers: imports go down.',
    from: { path: `^src/${group}/` },
    to: { path: [...later, '^src/[^/]+$'] },
  };
}

/** Returns the rule that a room imports only itself and these other rooms. */
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
      comment: 'Files that need each other are one file, or lack a third file.',
      from: {},
      to: { circular: true },
    },
    mayImport('src', [], 'The domain knows neither HTTP nor Temporal.'),
    ...LAYERS.map(importsDownwards),
    {
      name: 'known-layers',
      severity: 'error',
      comment: 'A new group of src/ gets its place in LAYERS.',
      from: {},
      to: { path: '^src/[^/]+/', pathNot: LAYERS.map((each) => `^src/${each}/`) },
    },
    mayImport('activities', ['src'], 'Activities use only the domain.'),
    mayImport('workflows', ['src', 'activities'], 'Workflows import next to nothing.'),
    mayImport('temporal', ['src', 'workflows'], 'The client side of Temporal.'),
    mayImport('api', ['src', 'temporal'], 'The API reaches Temporal by its client side.'),
    mayImport(
      'worker',
      ['src', 'workflows', 'activities', 'temporal'],
      'Workers know nothing of HTTP.',
    ),
    mayImport('dev', ['src'], "Programs of a developer's machine know only the domain."),
    mayImport(
      'bench',
      ['src', 'workflows', 'dev', 'test'],
      'Benchmarks run the product as a program.',
    ),
    {
      name: 'product-alone',
      severity: 'error',
      comment: 'Programs of production need nothing of the workshop.',
      from: {
        path: '^scripts/(admin-links|check-ledger|doctor|icecast-config|migrate|rotate-keys)\\.ts$',
      },
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
      comment: 'Only the process that makes payments opens keys of wallets.',
      from: { path: within(PRODUCT), pathNot: '^(src/payment-services|worker/payments)\\.ts$' },
      to: {
        path: '^src/(money/wallets/open-key|payment-services)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'messages-of-workflows',
      severity: 'error',
      comment: "Other rooms know types, ids and messages of workflows: their code is Temporal's.",
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
        pathNot: '^src/types/(operation-kinds|watchdog)\\.ts$',
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
