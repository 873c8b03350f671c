import type { BodyFormat } from '../body-format.js';
import type { Declaration } from '../endpoint.js';
import { byName, type NamedValues } from '../named-values.js';
import { refuseUnstorable } from '../storable.js';
import { validator } from '../validation.js';
import type { Middleware, ValidatedState } from './context.js';

export function validate(
  { params, query, headers }: Pick<Declaration, 'params' | 'query' | 'headers'>,
  format: BodyFormat | undefined,
): Middleware<ValidatedState> {
  const checkParams = params && validator(params, 'path');
  const checkQuery = query && validator(query, 'query');
  const checkHeaders = headers && validator(headers, 'headers');

  return async (ctx, next) => {
    const { req, state } = ctx;
    const type = req.headers['content-type'] ?? '';
    state.input = {
      params: checkParams?.(storable(ctx.params)),
      query: checkQuery?.(parseQuery(ctx.querystring)),
      headers: checkHeaders?.(req.headers),
      body: format && (await format.read(state.bytes, type)),
    };
    await next();
  };
}

function storable(params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  refuseUnstorable(params, 'path');
  return params;
}

function parseQuery(search: string): NamedValues {
  if (search === '') return {};
  const query = byName(new URLSearchParams(search));
  refuseUnstorable(query, 'query');
  return query;
}
