import { expect, test } from 'vitest';
import { operationsOf } from './document.js';
import { faultOf } from './verdict.js';

const [operation] = operationsOf({
  paths: {
    '/things': {
      post: {
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } },
        },
        responses: {
          201: {
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } },
          },
          204: {},
          400: { content: { 'application/json': { schema: { type: 'object' } } } },
          503: { content: { 'application/json': { schema: { type: 'object' } } } },
        },
      },
    },
  },
  components: {
    schemas: {
      Thing: {
        type: 'object',
        properties: { size: { type: 'integer', minimum: 1 } },
        required: ['size'],
        additionalProperties: false,
      },
    },
  },
});

const JSON_TYPE = 'application/json; charset=utf-8';

interface Said {
  readonly status: number;
  readonly type?: string;
  readonly text: string;
  /** Body sent instead of the declared one. */
  readonly sent?: string;
}

test.each<[Said, string | undefined]>([
  [{ status: 201, text: '{"size":1}' }, undefined],
  [{ status: 204, type: '', text: '' }, undefined],
  [{ status: 400, text: '{"error":"size must be at least 1"}' }, undefined],
  [{ status: 431, type: '', text: '' }, undefined],
  [{ status: 500, text: '{}' }, '500: {}'],
  [{ status: 503, text: '{}' }, '503: {}'],
  [{ status: 200, text: '{"size":1}' }, 'undeclared status 200'],
  [{ status: 201, type: 'text/html', text: '' }, 'undeclared text/html with 201'],
  [{ status: 204, text: '{}' }, 'undeclared application/json with 204'],
  [{ status: 201, text: '{"size":0}' }, 'undeclared body with 201'],
  [{ status: 201, text: '{"size":1,"secret":1}' }, 'undeclared body with 201'],
  [{ status: 400, text: '{"error":"relation \\"things\\" violates"}' }, 'leaks internals'],
  [{ status: 201, text: '{"size":1}', sent: '{"size":0}' }, '201 for a body that is not declared'],
  [{ status: 201, text: '{"size":1}', sent: '' }, '201 for a body that is not declared'],
])('for the response %j the fault is: %s', ({ status, type = JSON_TYPE, text, sent }, fault) => {
  if (!operation) throw new Error('no operation found in the document');
  const body = sent ?? '{"size":1}';
  const request = { method: 'POST', path: '/things', headers: {}, body };
  const found = faultOf(operation, request, { status, type, text }, []);
  if (fault === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(fault);
});

test('accepts an outage status when the dependency is unavailable', () => {
  if (!operation) throw new Error('no operation found in the document');
  const request = { method: 'POST', path: '/things', headers: {}, body: '{"size":1}' };
  const answer = { status: 503, type: JSON_TYPE, text: '{}' };
  expect(faultOf(operation, request, answer, [503])).toBeUndefined();
});

test('reports a masked 500 even when a dependency is unavailable', () => {
  if (!operation) throw new Error('no operation found in the document');
  const request = { method: 'POST', path: '/things', headers: {}, body: '{"size":1}' };
  const answer = { status: 500, type: JSON_TYPE, text: '{"error":"Internal server error"}' };
  expect(faultOf(operation, request, answer, [500])).toContain('500');
});
