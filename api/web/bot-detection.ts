import { isbot } from 'isbot';

/**
 * Detects automated requests (decision 9): the user agent names a program or is missing, or the hidden
 * field is filled in.
 */
export function looksAutomated(userAgent: string | undefined, hiddenField?: string): boolean {
  return !userAgent || isbot(userAgent) || Boolean(hiddenField);
}
