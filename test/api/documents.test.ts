import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { resolved } from '../fuzz/document.js';
import { allDocuments } from '../support/documents.js';

const parameter = z.object({
  name: z.string(),
  in: z.string(),
  description: z.string().optional(),
  schema: z.looseObject({}),
});

const operation = z.object({
  operationId: z.string().optional(),
  parameters: z.array(parameter).default([]),
});

const document = z.object({
  paths: z.record(z.string(), z.record(z.string(), operation)),
});

interface Operation extends z.infer<typeof operation> {
  /** For example `web: GET /api/agents`. */
  readonly title: string;
  readonly listener: string;
}

let operations: readonly Operation[];

beforeAll(async () => {
  operations = Object.entries(await allDocuments()).flatMap(([listener, each]) =>
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
