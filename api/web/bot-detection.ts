import { isbot } from 'isbot';

/** Detects automated requests (decision 9): no or a program's user agent, or a filled hidden field. */
export function looksAutomated(userAgent: string | undefined, hiddenField?: string): boolean {
  return !userAgent || isbot(userAgent) || Boolean(hiddenField);
}
