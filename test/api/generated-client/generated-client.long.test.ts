import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTypes, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { createBackend } from '../../../api/backend/backend.js';
import type { Listening } from '../../../api/http/server.js';
import { BackendClient } from '../../../api/web/backend-client.js';
import { createWeb } from '../../../api/web/web.js';
import { projectRoot } from '../../../dev/root.js';
import { databaseAlone } from '../../support/dependencies.js';
import { allDocuments } from '../../support/documents.js';
import { testDatabase, type TestDatabase } from '../../support/postgres.js';

const COMPILER = path.join(projectRoot, 'node_modules/@typescript/native/bin/tsc');

let folder: string;
let database: TestDatabase;
let alone: Awaited<ReturnType<typeof databaseAlone>>;
let web: Listening;
let backend: Listening;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-client-'));
  database = await testDatabase();
  alone = await databaseAlone(database);
  const { dependencies } = alone;
  backend = await createBackend(dependencies).listen('127.0.0.1', 0);
  const client = new BackendClient(backend.url, dependencies.settings.http.internalApiKey);
  web = await createWeb({ ...dependencies, backend: client }).listen('127.0.0.1', 0);
});
afterAll(async () => {
  await Promise.all([web?.close(), backend?.close()]);
  await alone?.close();
  await database?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Writes the types of a document. */
async function generate(name: string, document: unknown): Promise<void> {
  // The generator itself checks that the document is one.
  const types = astToString(await openapiTypes(document as OpenAPI3));
  await writeFile(path.join(folder, `${name}.d.ts`), types);
}

/** Compiles the files of the folder, strictly. @returns the compiler's output, empty without errors. */
async function compile(): Promise<string> {
  const compilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    target: 'ES2022',
    module: 'NodeNext',
    lib: ['ES2023', 'DOM'],
    types: ['node'],
    rootDir: '.',
    outDir: 'made',
  };
  const config = path.join(folder, 'tsconfig.json');
  await writeFile(config, JSON.stringify({ compilerOptions, include: ['.'] }));
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }');
  await symlink(path.join(projectRoot, 'node_modules'), path.join(folder, 'node_modules'));
  return new Promise((resolve) => {
    execFile(process.execPath, [COMPILER, '-p', config], { timeout: 100_000 }, (error, stdout) =>
      resolve(stdout === '' && error ? error.message : stdout),
    );
  });
}

const program = z.object({
  run: z.function({
    input: [z.object({ web: z.string(), backend: z.string() })],
    output: z.promise(z.unknown()),
  }),
});

test('a client that is generated from the documents compiles and calls the platform', async () => {
  for (const [name, document] of Object.entries(await allDocuments())) {
    await generate(name, document);
  }
  // No TypeScript file of the tree: its types exist only now.
  await copyFile(path.join(import.meta.dirname, 'program.txt'), path.join(folder, 'program.ts'));
  expect(await compile()).toBe('');

  const made = pathToFileURL(path.join(folder, 'made/program.js')).href;
  const { run } = program.parse(await import(/* @vite-ignore */ made));
  expect(await run({ web: web.url, backend: backend.url })).toEqual({
    email: 'generated@example.com',
    user: 'generated@example.com',
    name: 'Generated',
    keys: [{ name: 'client', scopes: ['agents', 'ai'] }],
    agents: 0,
    plan: null,
    hasModels: true,
    status: undefined,
    missing: [404, 'Agent not found'],
    deleted: expect.anything(),
  });
});
