const MAX_CAUSES = 5;

/** PostgreSQL's class of errors whose message quotes the value that was wrong. */
const DATA_EXCEPTION = /^22[0-9A-Z]{3}$/;

/**
 * What the log is told about an error. Only these fields: libraries hang queries with their values
 * and whole requests on their errors, and those can hold secrets.
 */
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

/** The error's own code, or that of the driver's error which it stands for. */
function codeOf(error: Error): string | undefined {
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'parent' in error && error.parent instanceof Error ? codeOf(error.parent) : undefined;
}

/** A stack begins with the message. */
const framesOf = (stack = ''): string =>
  stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');
