import tseslint from 'typescript-eslint';

/** Folders that the files of a room may not import from (docs/architecture.md, "Rooms"). */
function mayNotImport(rooms, others, why) {
  return {
    files: rooms.map((room) => `${room}/**/*.ts`),
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: `^(\\.\\./)+(${others.join('|')})/`,
              message: why,
            },
          ],
        },
      ],
    },
  };
}

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', '.data/', 'agent-runtime/'] },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/ban-ts-comment': [
        'error',
        { 'ts-expect-error': 'allow-with-description', 'ts-ignore': true },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector:
            'BinaryExpression[operator=/^[!=]==?$/] > MemberExpression[property.name="message"]',
          message: "Branch on an error's class or code, not on its text.",
        },
      ],
      eqeqeq: 'error',
    },
  },
  mayNotImport(
    ['src'],
    ['api', 'workflows', 'activities', 'temporal', 'worker', 'dev', 'scripts', 'test', 'bench'],
    'The domain knows neither HTTP nor Temporal.',
  ),
  mayNotImport(
    ['activities'],
    ['api', 'workflows', 'temporal', 'worker', 'dev', 'scripts', 'test', 'bench'],
    'Activities use the domain alone.',
  ),
  mayNotImport(
    ['api'],
    ['workflows', 'activities', 'worker', 'dev', 'scripts', 'test', 'bench'],
    'The API uses the domain, and reaches Temporal through its ports.',
  ),
  mayNotImport(
    ['temporal'],
    ['api', 'activities', 'worker', 'dev', 'scripts', 'test', 'bench'],
    "Temporal's client side uses the domain, and the workflows' types, ids and messages.",
  ),
  mayNotImport(
    ['worker'],
    ['api', 'dev', 'scripts', 'test', 'bench'],
    'A worker runs workflows and activities; it serves nobody over HTTP.',
  ),
  {
    files: ['workflows/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^node:', message: 'Workflows are deterministic.' },
            {
              regex: '^(\\.\\./)+(api|temporal|worker|dev|scripts|test|bench)/',
              message: 'Workflows import next to nothing.',
            },
            {
              regex: '^(\\.\\./)+activities/',
              allowTypeImports: true,
              message: 'Workflows know activities by their types.',
            },
            {
              regex: '^(\\.\\./)+src/(?!agents/(operation-rules|watchdog)\\.js$)',
              allowTypeImports: true,
              message: 'Every import costs memory in each cached workflow: pure rules only.',
            },
            {
              regex: '^(?!@temporalio/(workflow|common)$|\\.)',
              message: 'Workflows import next to nothing.',
            },
          ],
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      // Answers over HTTP are read as they come, and asserted on.
      // Helpers made of closures are taken apart freely.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
    },
  },
);
