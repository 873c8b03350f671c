import { hexText } from './hex-text.js';

/** An address on the chain; handlers get it in lower case. */
export const chainAddress = hexText(/^0x[\da-fA-F]{40}$/, 'must be 0x and 40 hex digits');
