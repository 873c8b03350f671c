import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { readRelease } from '../../src/platform/process/release.js';
import { resolved } from '../fuzz/document.js';
import { allDocuments } from '../support/documents.js';
import { exampleOf } from '../support/schema-example.js';

const parameter = z.object({
  name: z.string(),
  in: z.string(),
  description: z.string().optional(),
  schema: z.looseObject({}),
});

const operation = z.object({
  operationId: z.string().optional(),
  parameters: z.array(parameter).default([]),
  responses: z.record(
    z.string(),
    z.object({
      content: z.record(z.string(), z.object({ schema: z.looseObject({}) })).optional(),
    }),
  ),
});

const document = z.object({
  info: z.object({
    title: z.string().min(1),
    version: z.string(),
    contact: z.object({ name: z.string(), url: z.url() }),
  }),
  tags: z.array(z.object({ name: z.string(), description: z.string().min(20) })),
  paths: z.record(z.string(), z.record(z.string(), operation)),
});

interface Operation extends z.infer<typeof operation> {
  /** For example `web: GET /api/agents`. */
  readonly title: string;
  readonly listener: string;
}

let operations: readonly Operation[];
let documents: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  documents = await allDocuments();
  operations = Object.entries(documents).flatMap(([listener, each]) =>
    Object.entries(document.parse(resolved(each)).paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, found]) => ({
        ...found,
        title: `${listener}: ${method.toUpperCase()} ${path}`,
        listener,
      })),
    ),
  );
});

/** Returns the titles of the operations for which the check fails. */
const failing = (check: (operation: Operation) => boolean) =>
  operations.filter((each) => !check(each)).map(({ title }) => title);

test('every operation has a readable id, which no other of its document has', () => {
  expect(operations.length).toBeGreaterThan(180);
  expect(failing(({ operationId }) => /^[a-z][A-Za-z]{3,39}$/.test(operationId ?? ''))).toEqual([]);
  const ids = operations.map(({ listener, operationId }) => `${listener} ${operationId}`);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});

test('every document names the release and the operator, and explains its tags', () => {
  for (const each of Object.values(documents)) {
    const { info } = document.parse(resolved(each));
    expect(info.version).toBe(readRelease());
  }
});

test('every parameter has a description', () => {
  const all = operations.flatMap(({ parameters, title }) =>
    parameters.map(({ description = '', name }) => ({
      parameter: `${title} ${name}`,
      description,
    })),
  );
  expect(all.length).toBeGreaterThan(150);
  expect(all.filter(({ description }) => description.length < 5)).toEqual([]);
});

test('the documents take at most 2 kB of compact JSON for each operation, on average', () => {
  const bytes = Object.values(documents).map((each) => Buffer.byteLength(JSON.stringify(each)));
  expect(bytes.reduce((sum, each) => sum + each, 0) / operations.length).toBeLessThan(2_000);
});

test('the fields of every answer in JSON have examples, which together fit its schema', () => {
  const answers = operations.flatMap(({ responses, title }) =>
    Object.entries(responses).flatMap(([status, { content }]) => {
      const schema = content?.['application/json']?.schema;
      return schema === undefined ? [] : [{ answer: `${title} ${status}`, schema }];
    }),
  );
  expect(answers.length).toBeGreaterThan(1_000);
  const faults = answers.flatMap(({ answer, schema }) => {
    const { example, lacking } = exampleOf(schema);
    if (lacking.length > 0) return [`${answer} lacks ${lacking.join(', ')}`];
    return z.fromJSONSchema(schema).safeParse(example).success ? [] : [answer];
  });
  expect(faults).toEqual([]);
});

test('every parameter that is a whole number is an integer in the documents', () => {
  const names = new Set(['limit', 'days', 'wait', 'depth']);
  const numbers = operations.flatMap(({ parameters, title }) =>
    parameters.filter(({ name }) => names.has(name)).map((each) => ({ title, ...each })),
  );
  expect(numbers.length).toBeGreaterThan(30);
  expect(numbers.filter(({ schema }) => schema.type !== 'integer')).toEqual([]);
  const bounds = { minimum: expect.any(Number), default: expect.any(Number) };
  for (const { schema } of numbers) expect(schema).toMatchObject(bounds);
});
