"""proto"""
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from evaluations.stats.shared_verdicts import *
from evaluations.stats.reviewer_pairs import *
from evaluations.stats.reviewer_kappas import *
from evaluations.stats.significance import t_quantile

def copies(pairs):
    R=pairs.reviewers
    usable=(pairs.n>=50)
    edge=usable&(pairs.identical>=.97)&pairs.has_kappa
    g=np.arange(R); adj=np.zeros((R,R),bool); adj[pairs.low[edge],pairs.high[edge]]=True; adj|=adj.T
    while True:
        new=np.minimum(g,np.where(adj,g[None,:],R).min(axis=1,initial=R))
        if (new==g).all(): break
        g=new
    outside=usable&(g[pairs.low]!=g[pairs.high])
    groups=[np.flatnonzero(g==k) for k in np.unique(g) if (g==k).sum()>1]
    return groups,outside

def pair_sums(pairs,a,b):
    s=0
    for x in pairs.influences_of(a):
        w=x.other==b
        s=s+np.stack([np.bincount(x.cluster[w],v[w],10**5)[None] for v in (x.influence,x.verdicts)])
    return s

def screen(verdicts,R,skew=True,guard=10):
    pairs=pair_reviewers(verdicts,R)
    k=kappas_of_all(pairs)
    flags=[]
    groups,outside=copies(pairs)
    if groups and outside.any() and pairs.identical[outside].max()<.9:
        cand=np.flatnonzero(outside&pairs.has_kappa)
        if len(cand):
            best=cand[np.argmax(pairs.kappa[cand])]
            s=pair_sums(pairs,pairs.low[best],pairs.high[best])
            m=mean_kappas(pairs.kappa[[best]],np.array([1]),*s)
            t=t_quantile(1-.025/len(cand),max(m.clusters[0]-1,1))
            if m.value[0]-t*m.error[0]>0:
                for g in groups:
                    flags.append(("copies",tuple(g.tolist())))
                    keep=g[0]
                    for r in g[1:]: k=k.without(int(r))
    while (k.counts>0).sum()>=3:
        a,b=k.with_others,k.among_others
        err=a.error
        if skew:
            err=np.maximum(err,np.nanmedian(err[k.counts>0]))
        with np.errstate(all="ignore"):
            m=a.margin*err/a.error
            bad=(b.value-b.margin>0)&(a.value+m<b.value/2)&(k.counts>0)&(a.clusters>=guard)
        if not bad.any(): break
        w=int(np.argmin(np.where(bad,a.value,np.inf)))
        flags.append(("inverted" if a.value[w]+m[w]<0 else "random",(w,),a.value[w],b.value[w]))
        k=k.without(w)
    return flags
