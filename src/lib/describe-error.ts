const MAX_CAUSES = 5;

/** PostgreSQL's error class whose messages quote the invalid value. */
const DATA_EXCEPTION = /^22[0-9A-Z]{3}$/;

/** Returns an error's safe fields: libraries attach queries' values and whole requests to errors. */
export function describeError(error: unknown, depth = 0): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { thrown: typeof error };
  const code = codeOf(error);
  const cause =
    error.cause === undefined || depth >= MAX_CAUSES
      ? {}
      : { cause: describeError(error.cause, depth + 1) };
  const quotes = code !== undefined && DATA_EXCEPTION.test(code);
  const message = quotes ? 'The database refused a value' : error.message;
  const stack = quotes ? framesOf(error.stack) : error.stack;
  return { type: error.name, message, ...(code !== undefined && { code }), stack, ...cause };
}

/** Returns the error's own code, or that of the driver error that it wraps. */
function codeOf(error: Error): string | undefined {
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'parent' in error && error.parent instanceof Error ? codeOf(error.parent) : undefined;
}

/** Frames of a stack, without the message at its start. */
const framesOf = (stack = ''): string =>
  stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');
