/**
 * Returns an error's reason in a few words. A connection that several addresses refused has no text of its own:
 * the reasons are inside, or only a code.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error.message || codeOf(error);
}

function codeOf(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'parent' in error ? reasonOf(error.parent) : error.name;
}
