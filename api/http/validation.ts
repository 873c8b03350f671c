import type * as z from 'zod';
import { BadRequestError } from '../../src/lib/errors.js';
import { fieldName } from '../../src/lib/field-name.js';

type Issue = Parameters<z.core.$ZodErrorMap>[0];

/** Validates one part of a request; errors name the field. */
export type Validator<Output = unknown> = (input: unknown) => Output;

/**
 * Creates the validator of a request part. A schema's own `error` text takes precedence over the generated
 * sentences: the contract fixes some texts.
 * @param part the name for faults outside any single field: `body`, `query`, ...
 */
export function validator<S extends z.ZodType>(schema: S, part: string): Validator<z.output<S>> {
  const options = { error: (issue: Issue) => describeIssue(issue, part) };
  return (input) => {
    const result = schema.safeParse(input, options);
    if (result.success) return result.data;
    throw new BadRequestError(result.error.issues[0]?.message ?? `${part} is not valid`);
  };
}

/** Describes an issue in one readable sentence, without zod's own text. */
export function describeIssue(issue: Issue, part: string): string {
  const field = fieldName(issue.path ?? [], part);
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return `${field} is required`;
      if (part === 'query' && Array.isArray(issue.input)) return `${field} must be given once`;
      return `${field} must be ${TYPES[issue.expected] ?? `a value of type ${issue.expected}`}`;
    case 'too_small':
      return tooSmall(issue, field);
    case 'too_big':
      return `${field} must be at most ${amount(issue.maximum, issue.origin)}`;
    case 'invalid_format':
      return `${field} must be ${FORMATS[issue.format] ?? 'in the right format'}`;
    case 'invalid_value':
      if (issue.input === undefined) return `${field} is required`;
      return `${field} must be ${oneOf(issue.values)}`;
    case 'not_multiple_of':
      return `${field} must be a multiple of ${issue.divisor}`;
    case 'unrecognized_keys':
      return `${fieldName([...(issue.path ?? []), issue.keys[0] ?? ''], part)} is not a known field`;
    case 'invalid_union':
      return issue.input === undefined ? `${field} is required` : `${field} is not valid`;
    default:
      return `${field} is not valid`;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  date: 'a date',
  null: 'null',
};

const FORMATS: Readonly<Record<string, string>> = {
  email: 'an email address',
  url: 'a URL',
  uuid: 'a UUID',
  datetime: 'an ISO 8601 time',
  date: 'an ISO 8601 date',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
};

function tooSmall(issue: Extract<Issue, { code: 'too_small' }>, field: string): string {
  const isEmpty = issue.origin === 'string' || issue.origin === 'array';
  if (isEmpty && Number(issue.minimum) === 1) return `${field} is required`;
  const bound = issue.inclusive === false ? 'greater than' : 'at least';
  return `${field} must be ${bound} ${amount(issue.minimum, issue.origin)}`;
}

function amount(count: number | bigint, origin: string): string {
  if (origin === 'string') return `${count} characters`;
  if (origin === 'array' || origin === 'set') return `${count} entries`;
  return String(count);
}

function oneOf(values: readonly unknown[]): string {
  const names = values.map(String);
  return names.length === 1 ? String(names[0]) : `one of ${names.join(', ')}`;
}
