#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include "self/self_survey.h"
static void each(void *o,const facts_shown *of,const char *name,const facts_self_end *e){(void)o;
 printf("%s\t%s\t%d\t%.4g\t%s\t%s\t%s\n", of->fault?of->fault->word:"honest", facts_self_type_word(of->type), e->found, e->ratio, e->gate, e->tensor, name); fflush(stdout);}
int main(int argc,char**argv){ const char*suite=argv[1]; facts_survey s; facts_error err={0};
 facts_survey_choice c={.suites=&suite,.suite_count=1,.suite_dir=getenv("SUITES"),.where=getenv("WHERE"),.type=argc>2&&argv[2][0]?argv[2]:NULL,.fault=argc>3&&argv[3][0]?argv[3]:NULL,.sample=argc>4?(size_t)atoi(argv[4]):0,.quick=argc>5,.each=each};
 int st=facts_survey_run(&s,&c,&err); fprintf(stderr,"status %d %s\n%zu cases %zu refused %zu honest %zu alarms\n%s",st,err.text,s.cases,s.refused,s.honest,s.false_alarms,s.alarms);
 for(size_t i=0;i<s.count;i++){facts_shown*f=&s.shown[i]; fprintf(stderr,"%-24s %-5s able %zu asked %zu red %zu  %.4g %s of %s\n",f->fault->word,facts_self_type_word(f->type),f->able,f->asked,f->red,f->ratio,f->gate,f->tensor);} return 0;}
