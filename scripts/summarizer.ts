// The web summarizer alone, without database, Temporal and Docker: npm run summarizer
import '../api/summarizer/main.js';
